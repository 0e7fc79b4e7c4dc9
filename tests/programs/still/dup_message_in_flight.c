/* A message in flight on a duplicated communicator is probed and received without a status afterwards.
 * trial: ranks=2 */
#include "../common.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    MPI_Comm copy;
    MUST(MPI_Comm_dup(MPI_COMM_WORLD, &copy));
    int value = 0;
    if (trial_rank == 0) {
        value = 4711;
        MUST(MPI_Send(&value, 1, MPI_INT, 1, 17, copy));
        value = 815;
        MUST(MPI_Send(&value, 1, MPI_INT, 1, 17, MPI_COMM_WORLD));
    }
    trial_hold();
    if (trial_rank == 1) {
        int flag = 0, other = 0;
        MUST(MPI_Iprobe(0, 18, copy, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag, "a message with a tag that was never sent");
        MUST(MPI_Probe(0, 17, copy, MPI_STATUS_IGNORE));
        MUST(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, copy, &flag, MPI_STATUS_IGNORE));
        CHECK(flag, "a probed message is gone");
        MUST(MPI_Recv(&value, 1, MPI_INT, 0, 17, copy, MPI_STATUS_IGNORE));
        CHECK(value == 4711, "got %d on the duplicate", value);
        MUST(MPI_Recv(&other, 1, MPI_INT, 0, 17, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(other == 815, "got %d on the world", other);
        MUST(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, copy, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag, "a received message is still there");
    }
    MUST(MPI_Comm_free(&copy));
    return trial_finish();
}
