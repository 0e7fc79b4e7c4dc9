/* A window of memory that processes share is open: the checkpoint refuses by name, and the window works on.
 * trial: ranks=2 refuses=window */
#include "../common.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int *memory = NULL, *theirs = NULL, peer = 1 - trial_rank, unit = 0, value = 100 + trial_rank, got = -1;
    MPI_Aint bytes = 0;
    MPI_Win window;
    MUST(MPI_Win_allocate_shared(16 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window));
    MUST(MPI_Win_shared_query(window, peer, &bytes, &unit, &theirs));
    CHECK(bytes == 16 * sizeof(int) && unit == sizeof(int), "%ld bytes", (long)bytes);
    memory[3] = 7 + trial_rank;
    MUST(MPI_Win_fence(0, window));
    MUST(MPI_Put(&value, 1, MPI_INT, peer, 1, 1, MPI_INT, window));
    MUST(MPI_Win_fence(0, window));
    CHECK(memory[1] == 100 + peer, "put before: %d", memory[1]);
    trial_hold();
    CHECK(theirs[3] == 7 + peer, "seen: %d", theirs[3]);
    MUST(MPI_Win_fence(0, window));
    MUST(MPI_Accumulate(&value, 1, MPI_INT, peer, 1, 1, MPI_INT, MPI_SUM, window));
    MUST(MPI_Win_fence(MPI_MODE_NOSUCCEED, window));
    CHECK(memory[1] == 2 * (100 + peer), "accumulated: %d", memory[1]);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    MUST(MPI_Win_lock(MPI_LOCK_SHARED, peer, 0, window));
    MUST(MPI_Get(&got, 1, MPI_INT, peer, 3, 1, MPI_INT, window));
    MUST(MPI_Win_unlock(peer, window));
    CHECK(got == 7 + peer, "got %d", got);
    MUST(MPI_Win_free(&window));
    return trial_finish();
}
