/* A communicator and a datatype were freed while a receive and persistent sends that use them were pending.
 * trial: ranks=2 */
#include "../common.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int peer = 1 - trial_rank, in[6] = {0}, out[6];
    MPI_Comm copy;
    MPI_Datatype pairs;
    MPI_Request receive, send;
    for (int i = 0; i < 6; i++) out[i] = 10 * trial_rank + i, in[i] = -1;
    MUST(MPI_Comm_dup(MPI_COMM_WORLD, &copy));
    MUST(MPI_Type_vector(3, 1, 2, MPI_INT, &pairs));
    MUST(MPI_Type_commit(&pairs));
    MUST(MPI_Irecv(in, 1, pairs, peer, 1, copy, &receive));
    MUST(MPI_Send_init(out, 1, pairs, peer, 1, copy, &send));
    MUST(MPI_Comm_free(&copy));
    MUST(MPI_Type_free(&pairs));
    trial_hold();
    MUST(MPI_Start(&send));
    MUST(MPI_Wait(&receive, MPI_STATUS_IGNORE));
    MUST(MPI_Wait(&send, MPI_STATUS_IGNORE));
    MUST(MPI_Request_free(&send));
    for (int i = 0; i < 6; i++)
        CHECK(in[i] == (i % 2 ? -1 : 10 * peer + i), "element %d is %d", i, in[i]);
    return trial_finish();
}
