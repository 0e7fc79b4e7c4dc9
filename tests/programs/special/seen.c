/* What an application gets to know of its MPI: told before and after, a line each. With the argument `bound` it asks for MPI_TAG_UB before too, and relies on it after.
 * trial: ranks=2 */
#include "../common.h"

static const char *when = "before";

static void tell(const char *what, const char *text) {
    char line[MPI_MAX_LIBRARY_VERSION_STRING];
    snprintf(line, sizeof line, "%s", text);
    line[strcspn(line, "\r\n")] = '\0';
    printf("%s %s: %s\n", when, what, line);
}

static void tell_number(const char *what, long number) {
    char text[32];
    snprintf(text, sizeof text, "%ld", number);
    tell(what, text);
}

/* What the program has room for, by its own mpi.h, and behind it what no text may touch. */
static void tell_room(const char *what, size_t room, int (*get)(char *, int *)) {
    char place[room + 64];
    memset(place, '#', sizeof place);
    int length = 0, spared = 1;
    MUST(get(place, &length));
    for (size_t at = room; at < sizeof place; at++) spared &= place[at] == '#';
    CHECK(length > 0 && (size_t)length < room && memchr(place, '\0', room), "%s has %d characters", what, length);
    tell(what, spared ? "kept to" : "overrun");
}

static int error_text(char *place, int *length) { return MPI_Error_string(MPI_ERR_TRUNCATE, place, length); }

static int own_code;
static int own_text(char *place, int *length) { return MPI_Error_string(own_code, place, length); }

static long attribute(int key) {
    int *value = NULL, flag = 0;
    MUST(MPI_Comm_get_attr(MPI_COMM_WORLD, key, &value, &flag));
    return flag ? *value : -1;
}

static void tell_all(void) {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0, version = 0, subversion = 0, class = 0;
    MUST(MPI_Get_library_version(text, &length));
    CHECK(length > 0 && length < MPI_MAX_LIBRARY_VERSION_STRING, "length %d", length);
    tell("library", text);
    MUST(MPI_Get_version(&version, &subversion));
    tell_number("version", 10 * version + subversion);
    MUST(MPI_Get_processor_name(text, &length));
    CHECK(length < MPI_MAX_PROCESSOR_NAME, "length %d", length);
    tell("processor", text);
    MUST(MPI_Error_string(MPI_ERR_TRUNCATE, text, &length));
    CHECK(length < MPI_MAX_ERROR_STRING, "length %d", length);
    tell("error text", text);
    char one = 0;
    int got = 0, word = 0;
    /* An error that the library finds. */
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Request request;
    MUST(MPI_Isend(&word, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &request));
    got = MPI_Recv(&one, 1, MPI_CHAR, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Error_class(got, &class);
    tell_number("error class", class);
    MUST(MPI_Type_get_name(MPI_DOUBLE, text, &length));
    tell("datatype", text);
    MUST(MPI_Comm_get_name(MPI_COMM_WORLD, text, &length));
    tell("communicator", text);
    tell_number("universe", attribute(MPI_UNIVERSE_SIZE));
    tell_number("global clock", attribute(MPI_WTIME_IS_GLOBAL));
    tell_number("host", attribute(MPI_HOST));
    tell_number("last code", attribute(MPI_LASTUSEDCODE));
    tell_number("io", attribute(MPI_IO));
    tell_number("app number", attribute(MPI_APPNUM));
    tell_room("room for the version", MPI_MAX_LIBRARY_VERSION_STRING, MPI_Get_library_version);
    tell_room("room for the processor", MPI_MAX_PROCESSOR_NAME, MPI_Get_processor_name);
    tell_room("room for the error text", MPI_MAX_ERROR_STRING, error_text);
    tell_room("room for the own text", MPI_MAX_ERROR_STRING, own_text);
    MUST(own_text(text, &length));
    tell("own text", text);
    MUST(MPI_Error_class(own_code, &class));
    tell_number("own class", class);
    int keys = 0, there = 0;
    char value[64] = "";
    MUST(MPI_Info_get_nkeys(MPI_INFO_ENV, &keys));
    MUST(MPI_Info_get(MPI_INFO_ENV, "maxprocs", sizeof value - 1, value, &there));
    tell("environment", there ? value : "none");
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    MUST(MPI_Add_error_code(MPI_ERR_OTHER, &own_code));
    MUST(MPI_Add_error_string(own_code, "the pump has stopped"));
    int asks = argc > 1 && strcmp(argv[1], "bound") == 0;
    long bound = asks ? attribute(MPI_TAG_UB) : 0;
    if (trial_rank == 0) {
        tell_all();
        if (asks) tell_number("bound", bound);
        fflush(stdout);
    }
    trial_hold();
    when = "after";
    if (trial_rank == 0) {
        tell_all();
        tell_number("bound", attribute(MPI_TAG_UB));
        fflush(stdout);
    }
    /* Whatever it was told first, or last, is a tag. */
    if (!asks) bound = attribute(MPI_TAG_UB);
    int value = 9 + trial_rank, other = 0, peer = 1 - trial_rank;
    MUST(MPI_Sendrecv(&value, 1, MPI_INT, peer, (int)bound, &other, 1, MPI_INT, peer, (int)bound, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(other == 9 + peer, "got %d", other);
    MPI_Finalize();
    if (trial_failures) return 1;
    printf("OK %d\n", trial_rank);
    return 0;
}
