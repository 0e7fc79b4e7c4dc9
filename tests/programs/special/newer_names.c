/* Calls functions that the table of its MPI's names has and that nobody stands in for: their names are the arguments. Errors come back, so that all are called, unless `fatal`
 * comes first.
 * trial: ranks=2 */
#include "../common.h"
#include <dlfcn.h>

typedef intptr_t any(intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t);

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int first = 1;
    if (argc > 1 && !strcmp(argv[1], "fatal")) first = 2;
    else MUST(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (int i = first; i < argc; i++) {
        union { void *found; any *function; } named = {dlsym(RTLD_DEFAULT, argv[i])};
        if (!named.found) {
            trial_wrong(__FILE__, __LINE__, argv[i], "%s", "there is no such function");
            continue;
        }
        int class = MPI_SUCCESS, code = (int)named.function(0, 0, 0, 0, 0, 0, 0, 0, 0);
        MUST(MPI_Error_class(code, &class));
        CHECK(class == MPI_ERR_UNSUPPORTED_OPERATION, "%s: class %d", argv[i], class);
    }
    return trial_finish();
}
