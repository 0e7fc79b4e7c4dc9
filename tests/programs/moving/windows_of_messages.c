/* Windows of messages in both directions, of every length, completed by one call each: sends that are over at once and ones that wait for their receiver,
 * receives in rows, before, behind and between the sends, now and then on a communicator that is freed while they are under way. Beside them one
 * receive is polled that is always there.
 * trial: ranks=2,3 */
#include "../moving.h"

#define LONGEST 140
#define WORDS 2048
#define POLLED 999

static uint64_t out[LONGEST][2], in[LONGEST][2], large_out[WORDS], large_in[WORDS];
static MPI_Request requests[2 * LONGEST + 2];
static MPI_Status statuses[2 * LONGEST + 2];

static uint64_t value(uint64_t round, int rank, int i) { return trial_mix(round * 1000 + (uint64_t)rank * 200 + i); }

/* Where the receives stand among the requests: in front, behind, in turn with the sends. */
static int place(int order, int length, int i, int sends) {
    if (order == 2) return 2 * i + sends;
    return (order == sends ? 0 : length) + i;
}

static void window(uint64_t round, MPI_Comm *comm, int next, int previous) {
    int length = (int)(trial_mix(round) % LONGEST) + 1, order = (int)(round % 3), ignored = round % 5 == 2;
    for (int i = 0; i < length; i++) {
        in[i][0] = in[i][1] = 0;
        MUST(MPI_Irecv(in[i], 2, MPI_UINT64_T, round % 2 ? previous : MPI_ANY_SOURCE, i, *comm, &requests[place(order, length, i, 0)]));
    }
    MUST(MPI_Irecv(large_in, WORDS, MPI_UINT64_T, previous, LONGEST, *comm, &requests[2 * length]));
    /* Some ranks find their messages there, some wait. */
    if (round % 7 == (uint64_t)trial_rank) trial_compute(0.0003);
    for (int i = 0; i < length; i++) {
        out[i][0] = value(round, trial_rank, i), out[i][1] = ~out[i][0];
        MUST(MPI_Isend(out[i], 2, MPI_UINT64_T, next, i, *comm, &requests[place(order, length, i, 1)]));
    }
    for (int i = 0; i < WORDS; i++) large_out[i] = value(round, trial_rank, i);
    MUST(MPI_Isend(large_out, WORDS, MPI_UINT64_T, next, LONGEST, *comm, &requests[2 * length + 1]));
    if (round % 16 == 9) MUST(MPI_Comm_free(comm));
    MUST(MPI_Waitall(2 * length + 2, requests, ignored ? MPI_STATUSES_IGNORE : statuses));
    for (int i = 0; i < length; i++) {
        MPI_Status *status = &statuses[place(order, length, i, 0)];
        CHECK(in[i][0] == value(round, previous, i) && in[i][1] == ~in[i][0], "round %d: message %d of %d", (int)round, i, length);
        CHECK(ignored || (status->MPI_TAG == i && status->MPI_SOURCE == previous), "round %d: status of %d: tag %d", (int)round, i,
              status->MPI_TAG);
    }
    for (int i = 0; i < WORDS; i++) CHECK(large_in[i] == value(round, previous, i), "round %d: word %d", (int)round, i);
    for (int i = 0; i < 2 * length + 2; i++) CHECK(requests[i] == MPI_REQUEST_NULL, "round %d: request %d is not null", (int)round, i);
}

/* What nobody has sent yet is not there; what was sent comes once. */
static void polled(uint64_t round, MPI_Request *posted, int *got, int next, int previous) {
    int flag = 0, index = 0, sent = (int)round;
    MPI_Status status;
    MUST(MPI_Test(posted, &flag, &status));
    CHECK(!flag, "round %d: a message that nobody has sent", (int)round);
    MUST(MPI_Testany(1, posted, &index, &flag, &status));
    CHECK(!flag && index == MPI_UNDEFINED, "round %d: index %d", (int)round, index);
    if (round % 3) return;
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    MUST(MPI_Send(&sent, 1, MPI_INT, next, POLLED, MPI_COMM_WORLD));
    while (!flag) {
        if (round % 2) MUST(MPI_Test(posted, &flag, &status));
        else MUST(MPI_Testany(1, posted, &index, &flag, &status));
    }
    CHECK(*got == (int)round && status.MPI_TAG == POLLED && status.MPI_SOURCE == previous, "round %d: got %d", (int)round, *got);
    CHECK(*posted == MPI_REQUEST_NULL, "round %d: not null", (int)round);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    MUST(MPI_Irecv(got, 1, MPI_INT, previous, POLLED, MPI_COMM_WORLD, posted));
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int next = (trial_rank + 1) % trial_size, previous = (trial_rank + trial_size - 1) % trial_size, got = -1, last = -2;
    MPI_Request posted;
    MPI_Comm comm = MPI_COMM_NULL;
    MUST(MPI_Irecv(&got, 1, MPI_INT, previous, POLLED, MPI_COMM_WORLD, &posted));
    for (uint64_t round = 0; moving_agree(round, MPI_COMM_WORLD); round++) {
        if (comm == MPI_COMM_NULL) MUST(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        window(round, &comm, next, previous);
        polled(round, &posted, &got, next, previous);
    }
    MUST(MPI_Send(&last, 1, MPI_INT, next, POLLED, MPI_COMM_WORLD));
    MUST(MPI_Wait(&posted, MPI_STATUS_IGNORE));
    CHECK(trial_failures || got == last, "the last message is %d", got);
    if (comm != MPI_COMM_NULL) MUST(MPI_Comm_free(&comm));
    return trial_finish();
}
