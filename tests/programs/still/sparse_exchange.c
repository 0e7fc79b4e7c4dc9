/* A sparse exchange by consensus: synchronous sends, and a barrier that is begun when they are over. The receiver computes while the checkpoint comes.
 * trial: ranks=2,4 */
#include "../common.h"

#define TAG 5

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int value = 42 + trial_rank, received = 0, over = 0, in_barrier = 0, sends = trial_rank != trial_size - 1;
    int expected = trial_rank == trial_size - 1 ? trial_size - 1 : 0;
    MPI_Request sent = MPI_REQUEST_NULL, barrier;
    if (sends) MUST(MPI_Issend(&value, 1, MPI_INT, trial_size - 1, TAG, MPI_COMM_WORLD, &sent));
    trial_ready();
    /* The last one is alone with its work. */
    if (!sends) trial_wait();
    while (!over) {
        MPI_Status status;
        int there, got;
        MUST(MPI_Iprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &there, &status));
        if (there) {
            MUST(MPI_Recv(&got, 1, MPI_INT, status.MPI_SOURCE, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK(got == 42 + status.MPI_SOURCE, "%d from rank %d", got, status.MPI_SOURCE);
            received++;
        }
        if (in_barrier) {
            MUST(MPI_Test(&barrier, &over, MPI_STATUS_IGNORE));
        } else {
            int is_sent;
            MUST(MPI_Test(&sent, &is_sent, MPI_STATUS_IGNORE));
            if (is_sent) {
                MUST(MPI_Ibarrier(MPI_COMM_WORLD, &barrier));
                in_barrier = 1;
            }
        }
    }
    CHECK(received == expected, "the exchange is over, and %d of %d messages were received", received, expected);
    return trial_finish();
}
