/* A persistent buffered send of a large message, started again when its message has gone and while it has not: each carries what was in the
 * application's memory when it was started. One is in the buffer, received by nobody, at the checkpoint.
 * trial: ranks=2 */
#include "../common.h"

#define BYTES (256 << 10)
#define ROUNDS 6

/* Two messages each round: the second is started when the first has been received, or at once. */
static void send(char *message, MPI_Request *request, int round) {
    for (int i = 0; i < 2; i++) {
        trial_fill(message, BYTES, 2 * round + i);
        MUST(MPI_Start(request));
        if (round == 3 && i == 1) trial_hold();
        MUST(MPI_Wait(request, MPI_STATUS_IGNORE));
        memset(message, 0, BYTES);
        CHECK(*request != MPI_REQUEST_NULL, "a persistent request was freed");
        if (round % 2 == 0) MUST(MPI_Recv(NULL, 0, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    MUST(MPI_Barrier(MPI_COMM_WORLD));
}

static void receive(char *message, MPI_Request *request, int round) {
    if (round == 3) trial_hold();
    for (int i = 0; i < 2; i++) {
        MPI_Status status;
        MUST(MPI_Start(request));
        MUST(MPI_Wait(request, &status));
        CHECK(status.MPI_SOURCE == 0 && status.MPI_TAG == 0, "status");
        CHECK(trial_differs(message, BYTES, 2 * round + i) < 0, "round %d message %d wrong from byte %ld on", round, i,
              trial_differs(message, BYTES, 2 * round + i));
        memset(message, 0, BYTES);
        if (round % 2 == 0) MUST(MPI_Send(NULL, 0, MPI_INT, 0, 1, MPI_COMM_WORLD));
    }
    MUST(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int room = 4 * (BYTES + MPI_BSEND_OVERHEAD), bytes = 0;
    char *buffer = malloc(room), *message = malloc(BYTES), *detached = NULL;
    MPI_Request request;
    MUST(MPI_Buffer_attach(buffer, room));
    if (trial_rank == 0) MUST(MPI_Bsend_init(message, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request));
    else MUST(MPI_Recv_init(message, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request));
    for (int round = 0; round < ROUNDS; round++) {
        if (trial_rank == 0) send(message, &request, round);
        else receive(message, &request, round);
    }
    MUST(MPI_Request_free(&request));
    MUST(MPI_Buffer_detach(&detached, &bytes));
    CHECK(detached == buffer && bytes == room, "detached something else");
    return trial_finish();
}
