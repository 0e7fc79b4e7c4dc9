/* Ranks wait for several requests, some of which are over, or come to their end while the messages of a checkpoint are drained: small messages, large ones, sends that others
 * have yet to receive, persistent ones and collective operations, with their statuses or without.
 * trial: ranks=8 */
#include "../common.h"

#define MANY 20
#define LARGE (300 << 10)

static int in[MANY], out[MANY];
static char *large;

/* What every other one of these ranks is sent before the checkpoint, and what after it. */
static void send_half(int to, int half) {
    for (int i = half; i < MANY; i += 2) {
        out[i] = 100 * to + i;
        MUST(MPI_Send(&out[i], 1, MPI_INT, to, i, MPI_COMM_WORLD));
    }
}

static void check_one(int i) {
    CHECK(in[i] == 100 * trial_rank + i, "message %d holds %d", i, in[i]);
}

static void sender(void) {
    MPI_Request requests[2];
    MPI_Datatype every_other;
    MUST(MPI_Type_vector(LARGE / 2, 1, 2, MPI_BYTE, &every_other));
    MUST(MPI_Type_commit(&every_other));
    trial_fill(large, LARGE, 7);
    for (int to = 1; to < trial_size; to++) send_half(to, 0);
    MUST(MPI_Isend(large, LARGE, MPI_BYTE, 1, MANY, MPI_COMM_WORLD, &requests[0]));
    MUST(MPI_Isend(large, 1, every_other, 2, MANY, MPI_COMM_WORLD, &requests[1]));
    MUST(MPI_Type_free(&every_other));
    trial_hold();
    for (int to = 1; to < trial_size; to++) send_half(to, 1);
    MUST(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    char *taken = malloc(LARGE);
    for (int tag = 0; tag < 2; tag++) {
        MUST(MPI_Recv(taken, LARGE, MPI_BYTE, 5, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(trial_differs(taken, LARGE, 5) < 0, "what rank 5 has sent is wrong");
    }
    free(taken);
    int sent = -1;
    MUST(MPI_Recv(&sent, 1, MPI_INT, 7, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(sent == 77, "rank 7 has sent %d", sent);
}

/* One large message, which comes to its end in the drain. */
static void one(void) {
    MPI_Request request;
    MPI_Status status;
    MUST(MPI_Irecv(large, LARGE, MPI_BYTE, 0, MANY, MPI_COMM_WORLD, &request));
    for (int i = 1; i < MANY; i += 2) {
        MPI_Request other;
        MUST(MPI_Irecv(&in[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, &other));
        if (i == 1) trial_ready();
        MUST(MPI_Wait(&other, &status));
        CHECK(status.MPI_SOURCE == 0 && status.MPI_TAG == i, "status of %d", i);
    }
    MUST(MPI_Wait(&request, &status));
    int count = -1;
    MUST(MPI_Get_count(&status, MPI_BYTE, &count));
    CHECK(count == LARGE && status.MPI_TAG == MANY, "large: %d bytes, tag %d", count, status.MPI_TAG);
    CHECK(trial_differs(large, LARGE, 7) < 0, "the large message is wrong");
    for (int i = 0; i < MANY; i += 2) MUST(MPI_Recv(&in[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

/* A few: one of them is large and of a derived type, one is over, one is not. */
static void few(void) {
    MPI_Request requests[3];
    MPI_Status statuses[3];
    MPI_Datatype every_other;
    MUST(MPI_Type_vector(LARGE / 2, 1, 2, MPI_BYTE, &every_other));
    MUST(MPI_Type_commit(&every_other));
    trial_fill(large, LARGE, 7);
    for (int i = 0; i < LARGE; i += 2) large[i] = 0;
    MUST(MPI_Irecv(&in[0], 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &requests[0]));
    MUST(MPI_Irecv(&in[1], 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &requests[1]));
    MUST(MPI_Irecv(large, 1, every_other, 0, MANY, MPI_COMM_WORLD, &requests[2]));
    MUST(MPI_Type_free(&every_other));
    trial_ready();
    MUST(MPI_Waitall(3, requests, statuses));
    for (int i = 0; i < 2; i++) CHECK(statuses[i].MPI_SOURCE == 0 && statuses[i].MPI_TAG == i && statuses[i].MPI_ERROR == 0, "status of %d", i);
    CHECK(statuses[2].MPI_TAG == MANY, "the last one's tag is %d", statuses[2].MPI_TAG);
    CHECK(trial_differs(large, LARGE, 7) < 0, "the large message is wrong");
    for (int i = 2; i < MANY; i++) MUST(MPI_Recv(&in[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

/* A window of them, some persistent, some null or not started. */
static void window(int ignored, int plain) {
    MPI_Request requests[MANY + 2];
    MPI_Status statuses[MANY + 2];
    for (int i = 0; i < MANY; i++) {
        if (plain || i % 4 > 1) MUST(MPI_Irecv(&in[i], 1, MPI_INT, i % 3 ? 0 : MPI_ANY_SOURCE, i, MPI_COMM_WORLD, &requests[i]));
        else MUST(MPI_Recv_init(&in[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, &requests[i]));
        if (!plain && i % 4 < 2) MUST(MPI_Start(&requests[i]));
    }
    requests[MANY] = MPI_REQUEST_NULL;
    MUST(MPI_Recv_init(&in[0], 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &requests[MANY + 1]));
    trial_ready();
    MUST(MPI_Waitall(plain ? MANY : MANY + 2, requests, ignored ? MPI_STATUSES_IGNORE : statuses));
    for (int i = 0; i < MANY; i++) {
        if (!ignored) CHECK(statuses[i].MPI_SOURCE == 0 && statuses[i].MPI_TAG == i, "status of %d: tag %d", i, statuses[i].MPI_TAG);
        if (requests[i] != MPI_REQUEST_NULL) MUST(MPI_Request_free(&requests[i]));
        else CHECK(plain || i % 4 > 1, "persistent request %d is null", i);
    }
    MUST(MPI_Request_free(&requests[MANY + 1]));
}

/* Sends that are over when a checkpoint has taken what they send, and receives. */
static void sends(void) {
    MPI_Request requests[MANY + 2];
    MPI_Status statuses[MANY + 2];
    trial_fill(large, LARGE, 5);
    MUST(MPI_Issend(large, LARGE, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &requests[0]));
    MUST(MPI_Isend(large, LARGE, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[MANY + 1]));
    for (int i = 0; i < MANY; i++) MUST(MPI_Irecv(&in[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, &requests[1 + i]));
    trial_ready();
    MUST(MPI_Waitall(MANY + 2, requests, statuses));
    for (int i = 0; i < MANY; i++) CHECK(statuses[1 + i].MPI_TAG == i, "status of %d: tag %d", i, statuses[1 + i].MPI_TAG);
}

/* Collective operations beside receives. */
static void collectives(void) {
    MPI_Request requests[6];
    int given = 3, sum = 0, told = 4, count, indices[6], done = 0;
    MPI_Comm self;
    MUST(MPI_Comm_dup(MPI_COMM_SELF, &self));
    for (int i = 0; i < 4; i++) MUST(MPI_Irecv(&in[2 * i + 1], 1, MPI_INT, 0, 2 * i + 1, MPI_COMM_WORLD, &requests[i]));
    MUST(MPI_Iallreduce(&given, &sum, 1, MPI_INT, MPI_SUM, self, &requests[4]));
    MUST(MPI_Ibcast(&told, 1, MPI_INT, 0, self, &requests[5]));
    trial_ready();
    /* Those two are over; then it waits for receives alone. */
    while (done < 3) {
        MUST(MPI_Waitsome(6, requests, &count, indices, MPI_STATUSES_IGNORE));
        done += count;
    }
    MUST(MPI_Waitany(6, requests, &indices[0], MPI_STATUS_IGNORE));
    MUST(MPI_Waitall(6, requests, MPI_STATUSES_IGNORE));
    CHECK(sum == 3 && told == 4, "the operations gave %d and %d", sum, told);
    for (int i = 0; i < MANY; i++)
        if (i % 2 == 0 || i > 7) MUST(MPI_Recv(&in[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    MUST(MPI_Comm_free(&self));
}

/* A send and a receive in one. */
static void both(void) {
    int given = 77;
    MPI_Status status;
    trial_ready();
    MUST(MPI_Sendrecv(&given, 1, MPI_INT, 0, 2, &in[1], 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &status));
    CHECK(status.MPI_SOURCE == 0 && status.MPI_TAG == 1, "status of the one received");
    for (int i = 0; i < MANY; i++)
        if (i != 1) MUST(MPI_Recv(&in[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    large = malloc(LARGE);
    switch (trial_rank) {
    case 0: sender(); break;
    case 1: one(); break;
    case 2: few(); break;
    case 3: window(0, 0); break;
    case 4: window(1, 1); break;
    case 5: sends(); break;
    case 6: collectives(); break;
    default: both();
    }
    for (int i = 0; trial_rank && i < MANY; i++) check_one(i);
    free(large);
    return trial_finish();
}
