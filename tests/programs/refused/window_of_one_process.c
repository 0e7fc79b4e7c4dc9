/* A window of one process alone is open, which only the real MPI's own memory can be had for: the checkpoint refuses by name, and the window works on.
 * trial: ranks=2 refuses=mpi-window */
#include "../common.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int *memory = NULL, *shared = NULL, value = 100 + trial_rank, got = -1;
    MPI_Win window, of_shared;
    MUST(MPI_Win_allocate(16 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_SELF, &memory, &window));
    MUST(MPI_Win_allocate_shared(16 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_SELF, &shared, &of_shared));
    memory[3] = 7 + trial_rank;
    shared[2] = 9;
    MUST(MPI_Win_fence(0, window));
    MUST(MPI_Put(&value, 1, MPI_INT, 0, 1, 1, MPI_INT, window));
    MUST(MPI_Win_fence(0, window));
    CHECK(memory[1] == value, "put before: %d", memory[1]);
    trial_hold();
    MUST(MPI_Accumulate(&value, 1, MPI_INT, 0, 1, 1, MPI_INT, MPI_SUM, window));
    MUST(MPI_Win_fence(MPI_MODE_NOSUCCEED, window));
    CHECK(memory[1] == 2 * value, "accumulated: %d", memory[1]);
    MUST(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, of_shared));
    MUST(MPI_Get(&got, 1, MPI_INT, 0, 2, 1, MPI_INT, of_shared));
    MUST(MPI_Win_unlock(0, of_shared));
    CHECK(got == 9 && memory[3] == 7 + trial_rank, "got %d, %d", got, memory[3]);
    MUST(MPI_Win_free(&of_shared));
    MUST(MPI_Win_free(&window));
    return trial_finish();
}
