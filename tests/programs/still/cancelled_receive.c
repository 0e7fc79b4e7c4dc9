/* Receives that are pending through the checkpoint are cancelled; one is not, and gets its message.
 * trial: ranks=2 */
#include "../common.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int values[3] = {-1, -1, -1}, peer = 1 - trial_rank, flag = 0;
    MPI_Request requests[3];
    MPI_Status status;
    for (int i = 0; i < 3; i++) MUST(MPI_Irecv(&values[i], 1, MPI_INT, peer, 40 + i, MPI_COMM_WORLD, &requests[i]));
    MUST(MPI_Cancel(&requests[1]));
    trial_hold();
    MUST(MPI_Cancel(&requests[0]));
    MUST(MPI_Wait(&requests[0], &status));
    MUST(MPI_Test_cancelled(&status, &flag));
    CHECK(flag, "the receive cancelled afterwards is not cancelled");
    MUST(MPI_Wait(&requests[1], &status));
    MUST(MPI_Test_cancelled(&status, &flag));
    CHECK(flag, "the receive cancelled before is not cancelled");
    MUST(MPI_Send(&trial_rank, 1, MPI_INT, peer, 42, MPI_COMM_WORLD));
    MUST(MPI_Wait(&requests[2], &status));
    MUST(MPI_Test_cancelled(&status, &flag));
    CHECK(!flag && values[2] == peer, "cancelled %d, value %d", flag, values[2]);
    /* What was cancelled must not swallow a later message. */
    int late = 7 + trial_rank, got = -1;
    MUST(MPI_Sendrecv(&late, 1, MPI_INT, peer, 40, &got, 1, MPI_INT, peer, 40, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(got == 7 + peer && values[0] == -1 && values[1] == -1, "got %d, cancelled buffers %d %d", got, values[0],
          values[1]);
    return trial_finish();
}
