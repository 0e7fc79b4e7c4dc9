/* A Comm_idup that one rank has not begun when the checkpoint is asked for; the rank comes a little later by itself.
 * trial: ranks=2,4 */
#include "../common.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    MPI_Comm copy = MPI_COMM_NULL;
    MPI_Request request;
    int late = trial_rank == 0;
    for (int stage = 0; stage < 2; stage++) {
        if (stage == late) MUST(MPI_Comm_idup(MPI_COMM_WORLD, &copy, &request));
        if (stage == 0) trial_ready_late(late);
    }
    trial_wait();
    MUST(MPI_Wait(&request, MPI_STATUS_IGNORE));
    int sum = -1, result = -1;
    MUST(MPI_Allreduce(&trial_rank, &sum, 1, MPI_INT, MPI_SUM, copy));
    CHECK(sum == trial_size * (trial_size - 1) / 2, "sum %d", sum);
    MUST(MPI_Comm_compare(copy, MPI_COMM_WORLD, &result));
    CHECK(result == MPI_CONGRUENT, "compares as %d", result);
    MUST(MPI_Comm_free(&copy));
    return trial_finish();
}
