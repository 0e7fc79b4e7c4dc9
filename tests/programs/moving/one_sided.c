/* One-sided operations without pause: fences, locks, lock_all with requests, groups that start and post, windows that come and go. Every value
 * is checked.
 * trial: ranks=2,3 */
#include "../moving.h"

#define WORDS 16

static long plain[WORDS];

/* Everybody puts to the next, adds to the first, and gets from the one before. */
static void fenced(MPI_Win window, long *memory, long round) {
    int next = (trial_rank + 1) % trial_size, before = (trial_rank + trial_size - 1) % trial_size;
    long mine = 1000 * round + trial_rank, one = 1, got = -1;
    memory[0] = mine;
    memory[1] = 0;
    memory[2] = -1;
    MUST(MPI_Win_fence(0, window));
    MUST(MPI_Put(&mine, 1, MPI_LONG, next, 2, 1, MPI_LONG, window));
    MUST(MPI_Accumulate(&one, 1, MPI_LONG, 0, 1, 1, MPI_LONG, MPI_SUM, window));
    MUST(MPI_Get(&got, 1, MPI_LONG, before, 0, 1, MPI_LONG, window));
    MUST(MPI_Win_fence(MPI_MODE_NOSUCCEED, window));
    CHECK(memory[2] == 1000 * round + before, "round %ld: put %ld", round, memory[2]);
    CHECK(got == 1000 * round + before, "round %ld: got %ld", round, got);
    if (trial_rank == 0) CHECK(memory[1] == trial_size, "round %ld: sum %ld", round, memory[1]);
}

/* Everybody adds to a word of everybody, with an exclusive lock around reading and writing it. */
static void locked(MPI_Win window, long *expected) {
    for (int there = 0; there < trial_size; there++) {
        long value = -1;
        MUST(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, there, 0, window));
        MUST(MPI_Get(&value, 1, MPI_LONG, there, 4, 1, MPI_LONG, window));
        MUST(MPI_Win_flush(there, window));
        value += 1;
        MUST(MPI_Put(&value, 1, MPI_LONG, there, 4, 1, MPI_LONG, window));
        MUST(MPI_Win_unlock(there, window));
    }
    *expected += trial_size;
}

/* Requests, and counters that give everybody another number. */
static void all_locked(MPI_Win window, long round) {
    int next = (trial_rank + 1) % trial_size;
    long one = 1, old = -1, mine = 7 * round + trial_rank, back = -1;
    MPI_Request requests[2];
    MUST(MPI_Win_lock_all(0, window));
    MUST(MPI_Fetch_and_op(&one, &old, MPI_LONG, 0, 5, MPI_SUM, window));
    MUST(MPI_Rput(&mine, 1, MPI_LONG, next, 6, 1, MPI_LONG, window, &requests[0]));
    MUST(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    MUST(MPI_Win_flush(next, window));
    MUST(MPI_Rget(&back, 1, MPI_LONG, next, 6, 1, MPI_LONG, window, &requests[1]));
    MUST(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
    MUST(MPI_Win_unlock_all(window));
    CHECK(old >= round * trial_size && old < (round + 1) * trial_size, "round %ld: number %ld", round, old);
    CHECK(back == mine, "round %ld: %ld came back", round, back);
}

/* Everybody exposes its window to the one before, and works on the next one's. */
static void grouped(MPI_Win window, long *memory, MPI_Group before_only, MPI_Group next_only, long round) {
    int next = (trial_rank + 1) % trial_size, before = (trial_rank + trial_size - 1) % trial_size, done = 0;
    long mine = 13 * round + trial_rank;
    MUST(MPI_Win_post(before_only, 0, window));
    MUST(MPI_Win_start(next_only, 0, window));
    MUST(MPI_Put(&mine, 1, MPI_LONG, next, 7, 1, MPI_LONG, window));
    MUST(MPI_Win_complete(window));
    if (round % 2) {
        MUST(MPI_Win_wait(window));
    } else {
        while (!done) MUST(MPI_Win_test(window, &done));
    }
    CHECK(memory[7] == 13 * round + before, "round %ld: %ld", round, memory[7]);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int next = (trial_rank + 1) % trial_size, before = (trial_rank + trial_size - 1) % trial_size;
    long *allocated = NULL, expected = 0;
    MPI_Win kept, window;
    MPI_Group world, next_only, before_only;
    MUST(MPI_Comm_group(MPI_COMM_WORLD, &world));
    MUST(MPI_Group_incl(world, 1, &next, &next_only));
    MUST(MPI_Group_incl(world, 1, &before, &before_only));
    MUST(MPI_Win_allocate(WORDS * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &allocated, &kept));
    memset(allocated, 0, WORDS * sizeof(long));
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    for (uint64_t round = 0; moving_agree(round, MPI_COMM_WORLD); round++) {
        fenced(kept, allocated, (long)round);
        locked(kept, &expected);
        all_locked(kept, (long)round);
        MUST(MPI_Barrier(MPI_COMM_WORLD));
        CHECK(allocated[4] == expected, "round %ld: %ld, not %ld", (long)round, allocated[4], expected);
        MUST(MPI_Barrier(MPI_COMM_WORLD));
        grouped(kept, allocated, before_only, next_only, (long)round);
        if (round % 4) continue;
        MUST(MPI_Win_create(plain, sizeof plain, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &window));
        fenced(window, plain, (long)round);
        MUST(MPI_Win_free(&window));
    }
    MUST(MPI_Group_free(&world));
    MUST(MPI_Group_free(&next_only));
    MUST(MPI_Group_free(&before_only));
    MUST(MPI_Win_free(&kept));
    return trial_finish();
}
