/* Collective operations that a flag has told the end of: their buffers are the program's own from then on, also after a restart.
 * trial: ranks=2 */
#include "../collectives.h"
#include <sys/mman.h>

/* Asks until the request is over. It stays. */
static void until_told(MPI_Request request) {
    int flag = 0;
    do MUST(MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE));
    while (!flag);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int sum = trial_size * (trial_size + 1) / 2, result = 0, second = 0;
    MPI_Request unmapped, untouched;
    int *given = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *given = trial_rank + 1;
    MUST(MPI_Iallreduce(given, &result, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &unmapped));
    until_told(unmapped);
    CHECK(result == sum, "result %d", result);
    munmap(given, 4096);
    result = -7;
    /* Told, and begun again by nobody, although another one is begun behind it. */
    int own = 10;
    MUST(MPI_Iallreduce(&own, &second, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &untouched));
    struct collective *persistent = collective_make(ALLREDUCE, MPI_COMM_WORLD, 20, 0);
    collective_fill(persistent, 3);
    collective_call(persistent, PERSISTENT);
    MUST(MPI_Start(&persistent->request));
    until_told(persistent->request);
    collective_check(persistent);
    persistent->in[0] = -7;
    trial_hold();
    CHECK(result == -7, "the buffer of a finished operation has become %d", result);
    MUST(MPI_Wait(&untouched, MPI_STATUS_IGNORE));
    CHECK(second == 10 * trial_size, "second result %d", second);
    until_told(unmapped);
    MUST(MPI_Wait(&unmapped, MPI_STATUS_IGNORE));
    CHECK(result == -7, "the buffer of a finished operation has become %d in its wait", result);
    until_told(persistent->request);
    MUST(MPI_Wait(&persistent->request, MPI_STATUS_IGNORE));
    CHECK(persistent->in[0] == -7, "the buffer of a finished start has become %d", persistent->in[0]);
    collective_fill(persistent, 4);
    MUST(MPI_Start(&persistent->request));
    MUST(MPI_Wait(&persistent->request, MPI_STATUS_IGNORE));
    collective_check(persistent);
    MUST(MPI_Request_free(&persistent->request));
    collective_delete(persistent);
    return trial_finish();
}
