/* A persistent buffered send of a large message is started again and again while nobody receives: each start's message is what the
 * application's memory holds then, also after a checkpoint, at which those before have left the buffer.
 * trial: ranks=2 */
#include "../common.h"

#define BYTES (256 << 10)
#define MESSAGES 4

static void sends(char *message) {
    int room = MESSAGES * (BYTES + MPI_BSEND_OVERHEAD), bytes = 0;
    char *buffer = malloc(room), *detached = NULL;
    MPI_Request request;
    MUST(MPI_Buffer_attach(buffer, room));
    MUST(MPI_Bsend_init(message, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request));
    for (int i = 0; i < MESSAGES; i++) {
        trial_fill(message, BYTES, i);
        MUST(MPI_Start(&request));
        /* The second is started, and its end not asked for yet. */
        if (i == 1) trial_hold();
        MUST(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(request != MPI_REQUEST_NULL, "a persistent request was freed");
        memset(message, 0, BYTES);
    }
    MUST(MPI_Send(NULL, 0, MPI_INT, 1, 1, MPI_COMM_WORLD));
    MUST(MPI_Request_free(&request));
    MUST(MPI_Buffer_detach(&detached, &bytes));
    CHECK(detached == buffer && bytes == room, "detached something else");
}

static void receives(char *message) {
    trial_hold();
    MUST(MPI_Recv(NULL, 0, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < MESSAGES; i++) {
        MUST(MPI_Recv(message, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(trial_differs(message, BYTES, i) < 0, "message %d wrong from byte %ld on", i, trial_differs(message, BYTES, i));
        memset(message, 0, BYTES);
    }
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    char *message = malloc(BYTES);
    if (trial_rank == 0) sends(message);
    else receives(message);
    return trial_finish();
}
