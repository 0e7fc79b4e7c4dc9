/* A complete request that was looked at, but not freed, still has its status afterwards.
 * trial: ranks=2 */
#include "../common.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int peer = 1 - trial_rank, values[5] = {0}, late = -1, flag = 0, count = 0;
    MPI_Request complete, pending;
    MPI_Status status;
    MUST(MPI_Irecv(values, 5, MPI_INT, peer, 6, MPI_COMM_WORLD, &complete));
    MUST(MPI_Irecv(&late, 1, MPI_INT, peer, 7, MPI_COMM_WORLD, &pending));
    int out[3] = {trial_rank, 2, 3};
    MUST(MPI_Send(out, 3, MPI_INT, peer, 6, MPI_COMM_WORLD));
    do MUST(MPI_Request_get_status(complete, &flag, &status));
    while (!flag);
    CHECK(values[0] == peer, "value %d", values[0]);
    trial_hold();
    memset(&status, 0, sizeof status);
    MUST(MPI_Request_get_status(complete, &flag, &status));
    CHECK(flag, "no longer complete");
    MUST(MPI_Get_count(&status, MPI_INT, &count));
    CHECK(count == 3 && status.MPI_SOURCE == peer && status.MPI_TAG == 6, "status: %d elements, tag %d", count,
          status.MPI_TAG);
    MUST(MPI_Request_get_status(pending, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag, "complete without a message");
    MUST(MPI_Wait(&complete, &status));
    MUST(MPI_Get_count(&status, MPI_INT, &count));
    CHECK(count == 3 && complete == MPI_REQUEST_NULL, "waited for: %d elements", count);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    MUST(MPI_Send(&trial_rank, 1, MPI_INT, peer, 7, MPI_COMM_WORLD));
    do MUST(MPI_Request_get_status(pending, &flag, &status));
    while (!flag);
    CHECK(late == peer && pending != MPI_REQUEST_NULL, "late value %d", late);
    MUST(MPI_Wait(&pending, MPI_STATUS_IGNORE));
    return trial_finish();
}
