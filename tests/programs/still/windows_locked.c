/* Passive targets: one window with all locked, one that a single rank has locked exclusively, with operations, requests and flushes before
 * the checkpoint and after it. The locks hold after a restart.
 * trial: ranks=2,4 */
#include "../common.h"

#define WORDS 32

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    long *shared = NULL, *alone = NULL, one = 1, old = -1, mine = 40 + trial_rank, two = 2, got = -1, fetched = -1, none = 0;
    int next = (trial_rank + 1) % trial_size, before = (trial_rank + trial_size - 1) % trial_size;
    MPI_Win all, exclusive;
    MPI_Request requests[4];
    MUST(MPI_Win_allocate(WORDS * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &shared, &all));
    MUST(MPI_Win_allocate(WORDS * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &alone, &exclusive));
    memset(shared, 0, WORDS * sizeof(long));
    memset(alone, 0, WORDS * sizeof(long));
    shared[3] = 300 + trial_rank;
    MUST(MPI_Barrier(MPI_COMM_WORLD));

    MUST(MPI_Win_lock_all(0, all));
    MUST(MPI_Put(&mine, 1, MPI_LONG, next, 0, 1, MPI_LONG, all));
    MUST(MPI_Win_flush(next, all));
    MUST(MPI_Fetch_and_op(&one, &old, MPI_LONG, 0, 1, MPI_SUM, all));
    MUST(MPI_Win_flush_all(all));
    CHECK(old >= 0 && old < trial_size, "fetched %ld", old);
    /* Under way when the checkpoint comes. */
    MUST(MPI_Rput(&two, 1, MPI_LONG, next, 2, 1, MPI_LONG, all, &requests[0]));
    MUST(MPI_Rget(&got, 1, MPI_LONG, next, 3, 1, MPI_LONG, all, &requests[1]));
    MUST(MPI_Raccumulate(&two, 1, MPI_LONG, 0, 4, 1, MPI_LONG, MPI_SUM, all, &requests[2]));
    MUST(MPI_Rget_accumulate(&one, 1, MPI_LONG, &fetched, 1, MPI_LONG, 0, 5, 1, MPI_LONG, MPI_SUM, all, &requests[3]));
    if (trial_rank == 0) {
        MUST(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, trial_size - 1, 0, exclusive));
        MUST(MPI_Get(&none, 1, MPI_LONG, trial_size - 1, 7, 1, MPI_LONG, exclusive));
        MUST(MPI_Win_flush(trial_size - 1, exclusive));
        MUST(MPI_Put(&mine, 1, MPI_LONG, trial_size - 1, 6, 1, MPI_LONG, exclusive));
    }
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    trial_hold();

    MUST(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
    CHECK(got == 300 + next, "got %ld", got);
    CHECK(fetched >= 0 && fetched < trial_size, "fetched and accumulated %ld", fetched);
    MUST(MPI_Put(&mine, 1, MPI_LONG, next, 8, 1, MPI_LONG, all));
    MUST(MPI_Win_flush_local(next, all));
    MUST(MPI_Win_unlock_all(all));
    if (trial_rank == 0) {
        /* Nobody else has had the lock meanwhile: what it adds to is what it has read. */
        long more = none + 1;
        MUST(MPI_Put(&more, 1, MPI_LONG, trial_size - 1, 7, 1, MPI_LONG, exclusive));
        usleep(100000);
        MUST(MPI_Win_unlock(trial_size - 1, exclusive));
    } else {
        long seen = -1;
        MUST(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, trial_size - 1, 0, exclusive));
        MUST(MPI_Get(&seen, 1, MPI_LONG, trial_size - 1, 7, 1, MPI_LONG, exclusive));
        MUST(MPI_Win_flush(trial_size - 1, exclusive));
        CHECK(seen >= 1, "locked before the first one has unlocked: %ld", seen);
        seen++;
        MUST(MPI_Put(&seen, 1, MPI_LONG, trial_size - 1, 7, 1, MPI_LONG, exclusive));
        MUST(MPI_Win_unlock(trial_size - 1, exclusive));
    }
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(shared[0] == 40 + before, "put: %ld", shared[0]);
    CHECK(shared[2] == 2, "put with a request: %ld", shared[2]);
    CHECK(shared[8] == 40 + before, "put afterwards: %ld", shared[8]);
    if (trial_rank == 0) CHECK(shared[1] == trial_size && shared[4] == 2 * trial_size && shared[5] == trial_size, "sums");
    MUST(MPI_Win_lock(MPI_LOCK_SHARED, trial_rank, 0, exclusive));
    if (trial_rank == trial_size - 1) CHECK(alone[6] == 40 && alone[7] == trial_size, "%ld and %ld", alone[6], alone[7]);
    MUST(MPI_Win_unlock(trial_rank, exclusive));
    MUST(MPI_Win_free(&exclusive));
    MUST(MPI_Win_free(&all));
    return trial_finish();
}
