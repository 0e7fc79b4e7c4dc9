/* Calls whose number a tool counts: some before a checkpoint, some after it, some while the tool is switched off.
 * trial: ranks=2 */
#include "../common.h"

static void calls(int times) {
    for (int i = 0; i < times; i++) {
        int one = i, all, other = (trial_rank + 1) % trial_size, before = (trial_rank + trial_size - 1) % trial_size;
        MUST(MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        if (trial_rank % 2 == 0) MUST(MPI_Send(&one, 1, MPI_INT, other, 5, MPI_COMM_WORLD));
        MUST(MPI_Recv(&all, 1, MPI_INT, before, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        if (trial_rank % 2 != 0) MUST(MPI_Send(&one, 1, MPI_INT, other, 5, MPI_COMM_WORLD));
    }
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    calls(100);
    MPI_Pcontrol(0);
    calls(3);
    MPI_Pcontrol(1);
    /* A checkpoint finds a message on its way and a collective operation that has begun. */
    MPI_Request early, reduction;
    int one = trial_rank, all, other;
    MUST(MPI_Isend(&one, 1, MPI_INT, (trial_rank + 1) % trial_size, 6, MPI_COMM_WORLD, &early));
    if (trial_rank == 0) MUST(MPI_Iallreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &reduction));
    trial_hold();
    if (trial_rank != 0) MUST(MPI_Iallreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &reduction));
    MUST(MPI_Wait(&reduction, MPI_STATUS_IGNORE));
    MUST(MPI_Recv(&other, 1, MPI_INT, (trial_rank + trial_size - 1) % trial_size, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    MUST(MPI_Wait(&early, MPI_STATUS_IGNORE));
    calls(50);
    return trial_finish();
}
