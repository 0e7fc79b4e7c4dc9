/* Receives are posted, small and large, and their messages are on the way when the checkpoint comes.
 * trial: ranks=2 */
#include "../common.h"

#define LARGE (700 << 10)

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int peer = 1 - trial_rank, small = -1;
    char *out = malloc(LARGE), *in = malloc(LARGE);
    trial_fill(out, LARGE, 60 + trial_rank);
    MPI_Request requests[4];
    MUST(MPI_Irecv(&small, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &requests[0]));
    MUST(MPI_Irecv(in, LARGE, MPI_BYTE, peer, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[1]));
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    MUST(MPI_Isend(&trial_rank, 1, MPI_INT, peer, 1, MPI_COMM_WORLD, &requests[2]));
    MUST(MPI_Isend(out, LARGE, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &requests[3]));
    trial_hold();
    MPI_Status statuses[4];
    int count = 0;
    MUST(MPI_Waitall(4, requests, statuses));
    CHECK(small == peer && statuses[0].MPI_SOURCE == peer && statuses[0].MPI_TAG == 1, "small: %d", small);
    MUST(MPI_Get_count(&statuses[1], MPI_BYTE, &count));
    CHECK(count == LARGE && statuses[1].MPI_TAG == 2, "large: %d bytes, tag %d", count, statuses[1].MPI_TAG);
    CHECK(trial_differs(in, LARGE, 60 + peer) < 0, "large: wrong from byte %ld on", trial_differs(in, LARGE, 60 + peer));
    return trial_finish();
}
