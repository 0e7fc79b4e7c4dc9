/* Windows are made and freed, and communicators made of those that share memory, without pause: a job that is restarted while ranks are about to
 * do so goes on with what the new launch knows these objects by.
 * trial: ranks=2,3 */
#include "../moving.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int next = (trial_rank + 1) % trial_size, previous = (trial_rank + trial_size - 1) % trial_size;
    for (uint64_t round = 0; moving_agree(round, MPI_COMM_WORLD); round++) {
        for (long step = 0; step < 6; step++) {
            long memory = -1, mine = (long)round * 100 + trial_rank * 10 + step;
            MPI_Win window;
            MUST(MPI_Win_create(&memory, sizeof memory, sizeof memory, MPI_INFO_NULL, MPI_COMM_WORLD, &window));
            MUST(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, window));
            MUST(MPI_Put(&mine, 1, MPI_LONG, next, 0, 1, MPI_LONG, window));
            MUST(MPI_Win_unlock(next, window));
            /* It is complete everywhere when all have come here. */
            MUST(MPI_Win_free(&window));
            CHECK(memory == mine + (previous - trial_rank) * 10, "round %d, step %ld: %ld", (int)round, step, memory);

            MPI_Comm near;
            int size = 0;
            MUST(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, trial_rank, MPI_INFO_NULL, &near));
            MUST(MPI_Comm_size(near, &size));
            CHECK(size == trial_size, "round %d: %d are near", (int)round, size);
            MUST(MPI_Comm_free(&near));
        }
    }
    return trial_finish();
}
