/* Two-phase commit has no safe state with nonblocking collective operations: one that was begun, over or not, makes a
 * checkpoint refuse, even after its communicator has been freed.
 * trial: ranks=2 safe_states=barrier refuses=no-safe-state */
#include "../common.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    MPI_Comm copy;
    MPI_Request request;
    int mine = trial_rank + 1, sum = 0;
    MUST(MPI_Comm_dup(MPI_COMM_WORLD, &copy));
    MUST(MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, copy, &request));
    MUST(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(sum == trial_size * (trial_size + 1) / 2, "the sum is %d", sum);
    MUST(MPI_Comm_free(&copy));
    trial_hold();
    MUST(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    CHECK(sum == trial_size, "the maximum is %d", sum);
    return trial_finish();
}
