/* With two-phase commit, ranks that have come to a collective operation which others have not are stopped in the barrier before
 * it: nothing has begun, so the checkpoint waits for nobody. Overlapping groups, and one rank that stays away from all.
 * trial: ranks=3,4 safe_states=barrier */
#include "../common.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    MPI_Comm even;
    MUST(MPI_Comm_split(MPI_COMM_WORLD, trial_rank % 2 ? MPI_UNDEFINED : 0, trial_rank, &even));
    for (int round = 0; round < 3; round++) {
        int last = trial_rank == trial_size - 1;
        if (round == 1) {
            trial_ready();
            if (last) trial_wait();
        }
        long in = 1000 * (round + 1) + trial_rank, sum = 0, expected = 0;
        if (even != MPI_COMM_NULL) {
            MUST(MPI_Allreduce(&in, &sum, 1, MPI_LONG, MPI_SUM, even));
            for (int rank = 0; rank < trial_size; rank += 2) expected += 1000 * (round + 1) + rank;
            CHECK(sum == expected, "round %d, even ranks: %ld, not %ld", round, sum, expected);
        }
        MUST(MPI_Allreduce(&in, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
        expected = 0;
        for (int rank = 0; rank < trial_size; rank++) expected += 1000 * (round + 1) + rank;
        CHECK(sum == expected, "round %d: %ld, not %ld", round, sum, expected);
    }
    if (even != MPI_COMM_NULL) MUST(MPI_Comm_free(&even));
    return trial_finish();
}
