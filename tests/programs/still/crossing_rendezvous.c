/* Large nonblocking sends in both directions, the receives of which are posted on one side only.
 * trial: ranks=2,4 */
#include "../common.h"

#define BYTES (3u << 20)

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int peer = trial_rank ^ 1;
    char *out = malloc(BYTES), *in = malloc(BYTES);
    MPI_Request send, receive = MPI_REQUEST_NULL;
    trial_fill(out, BYTES, 1000 + trial_rank);
    memset(in, 0xee, BYTES);
    if (trial_rank & 1) MUST(MPI_Irecv(in, BYTES, MPI_BYTE, peer, 8, MPI_COMM_WORLD, &receive));
    MUST(MPI_Isend(out, BYTES, MPI_BYTE, peer, 8, MPI_COMM_WORLD, &send));
    trial_hold();
    if (!(trial_rank & 1)) MUST(MPI_Irecv(in, BYTES, MPI_BYTE, peer, 8, MPI_COMM_WORLD, &receive));
    MPI_Request both[2] = {send, receive};
    MPI_Status status[2];
    MUST(MPI_Waitall(2, both, status));
    CHECK(both[0] == MPI_REQUEST_NULL && both[1] == MPI_REQUEST_NULL, "requests not null after Waitall");
    CHECK(trial_differs(in, BYTES, 1000 + peer) < 0, "wrong from byte %ld on", trial_differs(in, BYTES, 1000 + peer));
    int count = 0;
    MUST(MPI_Get_count(&status[1], MPI_BYTE, &count));
    CHECK(count == (int)BYTES && status[1].MPI_SOURCE == peer && status[1].MPI_TAG == 8, "status: %d bytes from %d",
          count, status[1].MPI_SOURCE);
    return trial_finish();
}
