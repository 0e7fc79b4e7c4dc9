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
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
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
