/* Memory that ranks share in windows: one window is there from the beginning, others come and go; what is stored there is read by others and by MPI.
 * trial: ranks=2,3 */
#include "../moving.h"

enum { WORDS = 3000 };

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int next = (trial_rank + 1) % trial_size, previous = (trial_rank + trial_size - 1) % trial_size, unit;
    uint64_t *mine, *theirs;
    MPI_Aint bytes;
    MPI_Win lasting;
    MUST(MPI_Win_allocate_shared(WORDS * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &lasting));
    MUST(MPI_Win_shared_query(lasting, previous, &bytes, &unit, &theirs));
    memset(mine, 0, WORDS * 8);
    MUST(MPI_Win_lock_all(0, lasting));
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    for (uint64_t round = 0; moving_agree(round, MPI_COMM_WORLD); round++) {
        for (int i = 0; i < WORDS; i++) mine[i] = round * 1000003 + (uint64_t)(trial_rank * WORDS + i);
        MUST(MPI_Win_sync(lasting));
        MUST(MPI_Barrier(MPI_COMM_WORLD));
        MUST(MPI_Win_sync(lasting));
        for (int i = 0; i < WORDS; i++) {
            uint64_t expected = round * 1000003 + (uint64_t)(previous * WORDS + i);
            CHECK(theirs[i] == expected, "round %d: word %d is %lu", (int)round, i, (unsigned long)theirs[i]);
        }
        MUST(MPI_Barrier(MPI_COMM_WORLD));
        uint64_t one = 1, before = 0, *own;
        MUST(MPI_Fetch_and_op(&one, &before, MPI_UINT64_T, next, (MPI_Aint)(round % WORDS), MPI_SUM, lasting));
        MUST(MPI_Win_flush(next, lasting));
        uint64_t was = round * 1000003 + (uint64_t)next * WORDS + round % WORDS;
        CHECK(before == was, "round %d: fetched %lu", (int)round, (unsigned long)before);
        MUST(MPI_Barrier(MPI_COMM_WORLD));
        /* One that comes and goes. */
        MPI_Win window;
        MUST(MPI_Win_allocate_shared(trial_rank == 0 ? 64 : 0, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &window));
        MUST(MPI_Win_shared_query(window, 0, &bytes, &unit, &own));
        MUST(MPI_Win_fence(0, window));
        if (trial_rank == 0) own[3] = round;
        MUST(MPI_Win_fence(0, window));
        CHECK(own[3] == round && own[4] == 0, "round %d: %lu in the new window", (int)round, (unsigned long)own[3]);
        MUST(MPI_Win_fence(0, window));
        MUST(MPI_Win_free(&window));
    }
    MUST(MPI_Win_unlock_all(lasting));
    MUST(MPI_Win_free(&lasting));
    return trial_finish();
}
