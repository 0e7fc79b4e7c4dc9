/* Persistent requests of every mode, made before, started and completed several times afterwards.
 * trial: ranks=2 */
#include "../common.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int peer = 1 - trial_rank, out[4], in[4], room = 4 * (64 + MPI_BSEND_OVERHEAD);
    MPI_Request sends[4], receives[4];
    char *buffer = malloc(room);
    MUST(MPI_Buffer_attach(buffer, room));
    MUST(MPI_Send_init(&out[0], 1, MPI_INT, peer, 0, MPI_COMM_WORLD, &sends[0]));
    MUST(MPI_Bsend_init(&out[1], 1, MPI_INT, peer, 1, MPI_COMM_WORLD, &sends[1]));
    MUST(MPI_Ssend_init(&out[2], 1, MPI_INT, peer, 2, MPI_COMM_WORLD, &sends[2]));
    MUST(MPI_Rsend_init(&out[3], 1, MPI_INT, peer, 3, MPI_COMM_WORLD, &sends[3]));
    for (int i = 0; i < 4; i++) MUST(MPI_Recv_init(&in[i], 1, MPI_INT, peer, i, MPI_COMM_WORLD, &receives[i]));

    for (int round = 0; round < 6; round++) {
        /* Rounds before the checkpoint as well as after it. */
        if (round == 2) trial_hold();
        for (int i = 0; i < 4; i++) out[i] = 1000 * trial_rank + 10 * round + i, in[i] = -1;
        MUST(MPI_Startall(4, receives));
        MUST(MPI_Barrier(MPI_COMM_WORLD));
        for (int i = 0; i < 4; i++) MUST(MPI_Start(&sends[i]));
        MUST(MPI_Waitall(4, sends, MPI_STATUSES_IGNORE));
        MPI_Status statuses[4];
        MUST(MPI_Waitall(4, receives, statuses));
        for (int i = 0; i < 4; i++) {
            CHECK(in[i] == 1000 * peer + 10 * round + i, "round %d message %d holds %d", round, i, in[i]);
            CHECK(statuses[i].MPI_TAG == i && statuses[i].MPI_SOURCE == peer, "status of message %d", i);
            CHECK(receives[i] != MPI_REQUEST_NULL && sends[i] != MPI_REQUEST_NULL, "a persistent request was freed");
        }
        /* An inactive one completes at once, with the empty status. */
        int flag = 0;
        MUST(MPI_Test(&receives[0], &flag, &statuses[0]));
        CHECK(flag && statuses[0].MPI_SOURCE == MPI_ANY_SOURCE && statuses[0].MPI_TAG == MPI_ANY_TAG, "empty status");
    }
    for (int i = 0; i < 4; i++) {
        MUST(MPI_Request_free(&sends[i]));
        MUST(MPI_Request_free(&receives[i]));
        CHECK(sends[i] == MPI_REQUEST_NULL, "freed, not null");
    }
    return trial_finish();
}
