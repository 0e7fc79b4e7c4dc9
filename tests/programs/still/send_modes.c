/* Buffered, synchronous and ready sends, blocking and not, whose messages are in flight or whose receivers are late.
 * trial: ranks=2,4 */
#include "../common.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int peer = trial_rank ^ 1, sender = !(trial_rank & 1);
    int room = 8 * (1024 + MPI_BSEND_OVERHEAD), values[8];
    char *buffer = malloc(room);
    MPI_Request requests[8];
    MUST(MPI_Buffer_attach(buffer, room));
    for (int i = 0; i < 8; i++) values[i] = sender ? 10 * trial_rank + i : -1;

    if (sender) {
        MUST(MPI_Bsend(&values[0], 1, MPI_INT, peer, 0, MPI_COMM_WORLD));
        MUST(MPI_Ibsend(&values[1], 1, MPI_INT, peer, 1, MPI_COMM_WORLD, &requests[1]));
        MUST(MPI_Issend(&values[2], 1, MPI_INT, peer, 2, MPI_COMM_WORLD, &requests[2]));
        MUST(MPI_Isend(&values[3], 1, MPI_INT, peer, 3, MPI_COMM_WORLD, &requests[3]));
        /* Ready sends may be begun once the other side says that its receives are posted. */
        MUST(MPI_Recv(NULL, 0, MPI_INT, peer, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        MUST(MPI_Rsend(&values[4], 1, MPI_INT, peer, 4, MPI_COMM_WORLD));
        MUST(MPI_Irsend(&values[5], 1, MPI_INT, peer, 5, MPI_COMM_WORLD, &requests[5]));
        int flag = 1;
        MUST(MPI_Test(&requests[2], &flag, MPI_STATUS_IGNORE));
        CHECK(!flag, "a synchronous send is complete before its receive");
        trial_ready();
        if (trial_rank == 0) {
            /* Blocked in a synchronous send through the checkpoint. */
            MUST(MPI_Ssend(&values[6], 1, MPI_INT, peer, 6, MPI_COMM_WORLD));
        } else {
            trial_wait();
            MUST(MPI_Ssend(&values[6], 1, MPI_INT, peer, 6, MPI_COMM_WORLD));
        }
        MUST(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
        MUST(MPI_Wait(&requests[2], MPI_STATUS_IGNORE));
        MUST(MPI_Wait(&requests[3], MPI_STATUS_IGNORE));
        MUST(MPI_Wait(&requests[5], MPI_STATUS_IGNORE));
    } else {
        MUST(MPI_Irecv(&values[4], 1, MPI_INT, peer, 4, MPI_COMM_WORLD, &requests[4]));
        MUST(MPI_Irecv(&values[5], 1, MPI_INT, peer, 5, MPI_COMM_WORLD, &requests[5]));
        MUST(MPI_Send(NULL, 0, MPI_INT, peer, 99, MPI_COMM_WORLD));
        trial_hold();
        MUST(MPI_Wait(&requests[5], MPI_STATUS_IGNORE));
        MUST(MPI_Wait(&requests[4], MPI_STATUS_IGNORE));
        MUST(MPI_Recv(&values[3], 1, MPI_INT, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        MUST(MPI_Recv(&values[2], 1, MPI_INT, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        MUST(MPI_Recv(&values[1], 1, MPI_INT, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        MUST(MPI_Recv(&values[0], 1, MPI_INT, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        MUST(MPI_Recv(&values[6], 1, MPI_INT, peer, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = 0; i < 7; i++) CHECK(values[i] == 10 * peer + i, "message %d holds %d", i, values[i]);
    }
    char *detached = NULL;
    int bytes = 0;
    MUST(MPI_Buffer_detach(&detached, &bytes));
    CHECK(detached == buffer && bytes == room, "detached %p of %d bytes, attached %p of %d", (void *)detached, bytes,
          (void *)buffer, room);
    return trial_finish();
}
