/* Error handlers, the application's own among them, and its own error classes and codes are kept.
 * trial: ranks=2 */
#include "../common.h"

static int called, last_class;

static void handler(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    called++;
    MPI_Error_class(*code, &last_class);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    MPI_Comm returning, handled, inherits;
    MPI_Errhandler own, got;
    int class = 0, code = 0, which = 0, length = 0, value = 0;
    char text[MPI_MAX_ERROR_STRING];
    MUST(MPI_Comm_dup(MPI_COMM_WORLD, &returning));
    MUST(MPI_Comm_set_errhandler(returning, MPI_ERRORS_RETURN));
    MUST(MPI_Comm_create_errhandler(handler, &own));
    MUST(MPI_Comm_dup(MPI_COMM_WORLD, &handled));
    MUST(MPI_Comm_set_errhandler(handled, own));
    MUST(MPI_Comm_dup(handled, &inherits));
    MUST(MPI_Add_error_class(&class));
    MUST(MPI_Add_error_code(class, &code));
    MUST(MPI_Add_error_string(code, "the pump has stopped"));
    trial_hold();
    int error = MPI_Send(&value, 1, MPI_INT, 1234, 0, returning);
    MPI_Error_class(error, &which);
    CHECK(which == MPI_ERR_RANK, "a send to nobody gave class %d", which);
    CHECK(called == 0, "the handler of another communicator ran");
    error = MPI_Send(&value, 1, MPI_INT, 1234, 0, handled);
    CHECK(called == 1 && last_class == MPI_ERR_RANK, "handler: called %d times, class %d", called, last_class);
    CHECK(error != MPI_SUCCESS, "no error returned");
    MPI_Send(&value, -1, MPI_INT, 0, 0, inherits);
    CHECK(called == 2 && last_class == MPI_ERR_COUNT, "inherited: called %d times, class %d", called, last_class);
    MUST(MPI_Comm_call_errhandler(handled, code));
    CHECK(called == 3 && last_class == class, "called by name: %d times, class %d and not %d", called, last_class, class);
    MUST(MPI_Error_class(code, &which));
    CHECK(which == class, "class of the new code is %d", which);
    MUST(MPI_Error_string(code, text, &length));
    CHECK(strcmp(text, "the pump has stopped") == 0, "text '%s'", text);
    MUST(MPI_Error_string(MPI_ERR_TAG, text, &length));
    CHECK(length > 0 && strcasestr(text, "tag"), "text of MPI_ERR_TAG '%s'", text);
    MUST(MPI_Comm_get_errhandler(handled, &got));
    CHECK(got == own, "another handler");
    MUST(MPI_Errhandler_free(&got));
    MUST(MPI_Comm_get_errhandler(returning, &got));
    CHECK(got == MPI_ERRORS_RETURN, "another handler");
    MUST(MPI_Errhandler_free(&got));
    MUST(MPI_Errhandler_free(&own));
    MPI_Send(&value, 1, MPI_INT, -55, 0, handled);
    CHECK(called == 4, "a freed handler still belongs to its communicator: called %d times", called);
    MUST(MPI_Comm_free(&inherits));
    MUST(MPI_Comm_free(&handled));
    MUST(MPI_Comm_free(&returning));
    return trial_finish();
}
