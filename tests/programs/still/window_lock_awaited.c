/* A rank waits in MPI_Win_lock for one that computes with the lock in its hands: nobody waits for that at a checkpoint, and the lock is asked for
 * anew after a restart.
 * trial: ranks=2,3 */
#include "../common.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    long *memory = NULL, value = -1;
    MPI_Win window;
    MUST(MPI_Win_allocate(4 * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window));
    memory[0] = 0;
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    if (trial_rank == 0) MUST(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window));
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    trial_ready();
    if (trial_rank == 0) {
        trial_wait();
        value = 5;
        MUST(MPI_Put(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, window));
        usleep(50000);
        MUST(MPI_Win_unlock(0, window));
    } else {
        MUST(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window));
        MUST(MPI_Get(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, window));
        MUST(MPI_Win_flush(0, window));
        CHECK(value >= 5, "the lock was there too early: %ld", value);
        value++;
        MUST(MPI_Put(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, window));
        MUST(MPI_Win_unlock(0, window));
    }
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    MUST(MPI_Win_lock(MPI_LOCK_SHARED, trial_rank, 0, window));
    if (trial_rank == 0) CHECK(memory[0] == 5 + trial_size - 1, "%ld", memory[0]);
    MUST(MPI_Win_unlock(trial_rank, window));
    MUST(MPI_Win_free(&window));
    return trial_finish();
}
