/* Large nonblocking sends in both directions, the receives of which are posted on one side only; the argument is
 * another size.
 * trial: ranks=2,4 */
#include "../common.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    size_t bytes = argc > 1 ? strtoul(argv[1], NULL, 0) : 3 << 20;
    int peer = trial_rank ^ 1;
    char *out = malloc(bytes), *in = malloc(bytes);
    MPI_Request send, receive = MPI_REQUEST_NULL;
    trial_fill(out, bytes, 1000 + trial_rank);
    memset(in, 0xee, bytes);
    if (trial_rank & 1) MUST(MPI_Irecv(in, (int)bytes, MPI_BYTE, peer, 8, MPI_COMM_WORLD, &receive));
    MUST(MPI_Isend(out, (int)bytes, MPI_BYTE, peer, 8, MPI_COMM_WORLD, &send));
    trial_hold();
    if (!(trial_rank & 1)) MUST(MPI_Irecv(in, (int)bytes, MPI_BYTE, peer, 8, MPI_COMM_WORLD, &receive));
    MPI_Request both[2] = {send, receive};
    MPI_Status status[2];
    MUST(MPI_Waitall(2, both, status));
    CHECK(both[0] == MPI_REQUEST_NULL && both[1] == MPI_REQUEST_NULL, "requests not null after Waitall");
    CHECK(trial_differs(in, bytes, 1000 + peer) < 0, "wrong from byte %ld on", trial_differs(in, bytes, 1000 + peer));
    int count = 0;
    MUST(MPI_Get_count(&status[1], MPI_BYTE, &count));
    CHECK(count == (int)bytes && status[1].MPI_SOURCE == peer && status[1].MPI_TAG == 8, "status: %d bytes from %d",
          count, status[1].MPI_SOURCE);
    return trial_finish();
}
