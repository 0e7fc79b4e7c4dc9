/* A rank that is blocked in MPI_Ssend when the checkpoint comes, and one in MPI_Waitall: both come back when the receives begin, and not before.
 * trial: ranks=3 */
#include "../common.h"

/* Whether the last rank has said that it receives. */
static int receives(void) {
    char path[PATH_MAX];
    if (!getenv("TRIAL_DIR")) return 1;
    trial_path(path, sizeof path, "receives.2");
    return access(path, F_OK) == 0;
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int value = trial_rank, got;
    trial_ready();
    if (trial_rank == 0) {
        MUST(MPI_Ssend(&value, 1, MPI_INT, 2, 1, MPI_COMM_WORLD));
        CHECK(receives(), "%s", "MPI_Ssend returned without a receive");
    } else if (trial_rank == 1) {
        MPI_Request both[2];
        MUST(MPI_Issend(&value, 1, MPI_INT, 2, 1, MPI_COMM_WORLD, &both[0]));
        MUST(MPI_Irecv(&got, 1, MPI_INT, 2, 1, MPI_COMM_WORLD, &both[1]));
        MUST(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
        CHECK(receives() && got == 2, "%s", "MPI_Waitall returned without a receive");
    } else {
        MUST(MPI_Send(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD));
        trial_wait();
        usleep(50000);
        trial_mark("receives");
        for (int from = 0; from < 2; from++) {
            MUST(MPI_Recv(&got, 1, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK(got == from, "value %d", got);
        }
    }
    return trial_finish();
}
