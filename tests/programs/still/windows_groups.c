/* Epochs between groups: at the checkpoint one rank has posted and is not complete, one has started, one has completed already.
 * trial: ranks=3 */
#include "../common.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    static long memory[8], one = 11, two = 22, three = 33;
    MPI_Win window;
    MPI_Group world, others, first;
    int root = 0, there[2] = {1, 2}, done = 1;
    MUST(MPI_Comm_group(MPI_COMM_WORLD, &world));
    MUST(MPI_Group_incl(world, 1, &root, &first));
    MUST(MPI_Group_incl(world, 2, there, &others));
    MUST(MPI_Win_create(memory, sizeof memory, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &window));
    if (trial_rank == 0) {
        MUST(MPI_Win_post(others, 0, window));
        MUST(MPI_Win_test(window, &done));
        CHECK(!done, "nobody has completed, or not both");
    } else {
        MUST(MPI_Win_start(first, 0, window));
        MUST(MPI_Put(trial_rank == 1 ? &one : &two, 1, MPI_LONG, 0, trial_rank, 1, MPI_LONG, window));
        if (trial_rank == 1) MUST(MPI_Win_complete(window));
    }
    /* A target that is outside of MPI may keep others in their calls. */
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    trial_hold();
    if (trial_rank == 0) {
        MUST(MPI_Win_wait(window));
        CHECK(memory[1] == 11 && memory[2] == 22 && memory[3] == 33, "%ld %ld %ld", memory[1], memory[2], memory[3]);
    } else if (trial_rank == 2) {
        MUST(MPI_Put(&three, 1, MPI_LONG, 0, 3, 1, MPI_LONG, window));
        MUST(MPI_Win_complete(window));
    }
    /* The other way round. */
    if (trial_rank == 0) {
        MUST(MPI_Win_start(others, 0, window));
        for (int i = 0; i < 2; i++) MUST(MPI_Put(&one, 1, MPI_LONG, there[i], 5, 1, MPI_LONG, window));
        MUST(MPI_Win_complete(window));
    } else {
        MUST(MPI_Win_post(first, 0, window));
        done = 0;
        while (!done) MUST(MPI_Win_test(window, &done));
        CHECK(memory[5] == 11, "%ld", memory[5]);
    }
    MUST(MPI_Group_free(&world));
    MUST(MPI_Group_free(&others));
    MUST(MPI_Group_free(&first));
    MUST(MPI_Win_free(&window));
    return trial_finish();
}
