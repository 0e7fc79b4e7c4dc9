/* Constants of MPI 4, and MPICH's own of a datatype of 16 bits, before and after a checkpoint. For an MPI whose ABI has them.
 * trial: ranks=2 */
#include "../common.h"

static void all(void) {
    int class = MPI_SUCCESS, sets = 0;
    /* A class is its own, and has a text, also on a library that has no such class. */
    int classes[] = {MPI_ERR_SESSION, MPI_ERR_VALUE_TOO_LARGE, MPI_ERR_PROC_ABORTED, MPI_T_ERR_INVALID, MPI_ERR_RMA_SHARED, MPI_ERR_TYPE, MPI_SUCCESS};
    for (int i = 0; i < (int)(sizeof classes / sizeof classes[0]); i++) {
        char text[MPI_MAX_ERROR_STRING] = "";
        int bytes = 0, found = -1;
        MUST(MPI_Error_class(classes[i], &found));
        CHECK(found == classes[i], "class %d is of class %d", classes[i], found);
        MUST(MPI_Error_string(classes[i], text, &bytes));
        CHECK(bytes > 0 && bytes == (int)strlen(text), "class %d: %d bytes, '%s'", classes[i], bytes, text);
    }
    int of_session = MPI_Session_get_num_psets(MPI_SESSION_NULL, MPI_INFO_NULL, &sets);
    CHECK(of_session == MPI_ERR_SESSION, "code %d", of_session);
    MPI_Errhandler handler;
    MUST(MPI_Comm_get_errhandler(MPI_COMM_SELF, &handler));
    CHECK(handler == MPI_ERRORS_ABORT, "%x", (unsigned)handler);
    MUST(MPI_Errhandler_free(&handler));

    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0, bytes = 0;
    MUST(MPI_Get_library_version(library, &length));
    int code = MPI_Type_size(MPIX_C_FLOAT16, &bytes);
    if (strstr(library, "MPICH")) CHECK(code == MPI_SUCCESS && bytes == 2, "code %d, %d bytes", code, bytes);
    else {
        MUST(MPI_Error_class(code, &class));
        CHECK(class == MPI_ERR_TYPE, "class %d, %d bytes", class, bytes);
    }
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    MUST(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    MUST(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ABORT));
    all();
    trial_ready();
    trial_wait();
    all();
    return trial_finish();
}
