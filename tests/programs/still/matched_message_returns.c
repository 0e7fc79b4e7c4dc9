/* A message that Mprobe has matched is held, and errors return: its receive has the message, or the error that the MPI has for it without a checkpoint,
 * as Open MPI over libfabric has. Messages without a matched probe arrive before it and after it.
 * trial: ranks=2 */
#include "../common.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int values[3] = {71, 72, 73}, got[3] = {0, 0, 0};
    if (trial_rank == 0) {
        for (int i = 0; i < 2; i++) MUST(MPI_Send(&values[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD));
        trial_hold();
        MUST(MPI_Send(&values[2], 1, MPI_INT, 1, 2, MPI_COMM_WORLD));
    } else {
        MPI_Message message = MPI_MESSAGE_NULL;
        MPI_Status status;
        int found = 0;
        while (!found) MUST(MPI_Improbe(0, 0, MPI_COMM_WORLD, &found, &message, &status));
        trial_hold();
        int code = MPI_Mrecv(&got[0], 1, MPI_INT, &message, &status);
        CHECK(code != MPI_SUCCESS || got[0] == 71, "the matched message holds %d", got[0]);
        for (int i = 1; i < 3; i++) MUST(MPI_Recv(&got[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(got[1] == 72 && got[2] == 73, "%d, %d", got[1], got[2]);
    }
    return trial_finish();
}
