/* A dynamic window: memory is attached and detached before the checkpoint and after it; displacements are addresses.
 * trial: ranks=2,3 */
#include "../common.h"

static long first[16], second[16];

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int next = (trial_rank + 1) % trial_size, before = (trial_rank + trial_size - 1) % trial_size;
    long mine = 500 + trial_rank, more = 600 + trial_rank;
    long *third = calloc(4096, sizeof(long));
    MPI_Aint own[3], *all = calloc(3 * trial_size, sizeof *all);
    MPI_Win window;
    MUST(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window));
    MUST(MPI_Win_attach(window, first, sizeof first));
    MUST(MPI_Win_attach(window, second, sizeof second));
    MUST(MPI_Win_attach(window, third, 4096 * sizeof(long)));
    MUST(MPI_Win_detach(window, second));
    MUST(MPI_Get_address(first, &own[0]));
    MUST(MPI_Get_address(second, &own[1]));
    MUST(MPI_Get_address(third, &own[2]));
    MUST(MPI_Allgather(own, 3, MPI_AINT, all, 3, MPI_AINT, MPI_COMM_WORLD));
    MUST(MPI_Win_lock_all(0, window));
    MUST(MPI_Put(&mine, 1, MPI_LONG, next, all[3 * next] + 3 * sizeof(long), 1, MPI_LONG, window));
    /* A target that is outside of MPI may keep others in their calls. */
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    trial_hold();
    MUST(MPI_Put(&more, 1, MPI_LONG, next, all[3 * next + 2] + 4000 * sizeof(long), 1, MPI_LONG, window));
    MUST(MPI_Win_unlock_all(window));
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(first[3] == 500 + before, "put before: %ld", first[3]);
    CHECK(third[4000] == 600 + before, "put after: %ld", third[4000]);
    MUST(MPI_Win_detach(window, first));
    MUST(MPI_Win_attach(window, second, sizeof second));
    MUST(MPI_Win_fence(0, window));
    MUST(MPI_Put(&mine, 1, MPI_LONG, next, all[3 * next + 1], 1, MPI_LONG, window));
    MUST(MPI_Win_fence(MPI_MODE_NOSUCCEED, window));
    CHECK(second[0] == 500 + before, "put into what was attached later: %ld", second[0]);
    MUST(MPI_Win_free(&window));
    return trial_finish();
}
