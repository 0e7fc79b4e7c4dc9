/* A window for one-sided communication is open: the checkpoint refuses by name, and the window works on.
 * trial: ranks=2 refuses=window */
#include "../common.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int *memory = NULL, own[4] = {0}, peer = 1 - trial_rank, value = 100 + trial_rank, got = -1;
    MPI_Win made, allocated;
    MUST(MPI_Win_create(own, sizeof own, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &made));
    MUST(MPI_Win_allocate(16 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &allocated));
    memory[3] = 7 + trial_rank;
    MUST(MPI_Win_fence(0, made));
    MUST(MPI_Put(&value, 1, MPI_INT, peer, 1, 1, MPI_INT, made));
    MUST(MPI_Win_fence(0, made));
    CHECK(own[1] == 100 + peer, "put before: %d", own[1]);
    trial_hold();
    MUST(MPI_Win_fence(0, made));
    MUST(MPI_Accumulate(&value, 1, MPI_INT, peer, 1, 1, MPI_INT, MPI_SUM, made));
    MUST(MPI_Win_fence(0, made));
    CHECK(own[1] == 2 * (100 + peer), "accumulated: %d", own[1]);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    MUST(MPI_Win_lock(MPI_LOCK_SHARED, peer, 0, allocated));
    MUST(MPI_Get(&got, 1, MPI_INT, peer, 3, 1, MPI_INT, allocated));
    MUST(MPI_Win_unlock(peer, allocated));
    CHECK(got == 7 + peer, "got %d", got);
    MUST(MPI_Win_free(&allocated));
    MUST(MPI_Win_free(&made));
    return trial_finish();
}
