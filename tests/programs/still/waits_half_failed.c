/* Ranks wait for several requests, one of which has failed, or fails while the messages of a checkpoint are drained, before the others are over: messages too long for their receives, plain and
 * persistent, in a wait that has the failed one in hand and in one that has another. The error is told by the call that ends the request, wherever a checkpoint or a restart
 * comes.
 * trial: ranks=9 */
#include "../common.h"

enum { FITS, WRONG, LATE, MANY };
enum { WORDS = 4, BROADCASTS = 7 };

static int in[MANY][2 * WORDS], out[2 * WORDS] = {1, 2, 3, 4, 5, 6, 7, 8};

/* Of ranks 0 and BROADCASTS. */
static MPI_Comm two;

static int class_of(int code) {
    int class = -1;
    MPI_Error_class(code, &class);
    return class;
}

static void check_wrong(int code, const MPI_Status *status) {
    CHECK(class_of(code) == MPI_ERR_TRUNCATE, "class %d", class_of(code));
    if (status) CHECK(status->MPI_SOURCE == 0 && status->MPI_TAG == WRONG, "source %d, tag %d", status->MPI_SOURCE, status->MPI_TAG);
}

static void send(int to, int tag, int count) {
    MUST(MPI_Send(out, count, MPI_INT, to, tag, MPI_COMM_WORLD));
}

static void sender(void) {
    for (int to = 1; to < trial_size; to++) {
        send(to, FITS, WORDS);
        send(to, WRONG, 2 * WORDS);
    }
    MPI_Request request;
    MUST(MPI_Ibcast(out, 2 * WORDS, MPI_INT, 0, two, &request));
    MUST(MPI_Wait(&request, MPI_STATUS_IGNORE));
    trial_hold();
    for (int to = 1; to < trial_size; to++) send(to, LATE, WORDS);
}

static void post(MPI_Request *requests, int persistent) {
    for (int tag = 0; tag < MANY; tag++) {
        if (!persistent) {
            MUST(MPI_Irecv(in[tag], WORDS, MPI_INT, 0, tag, MPI_COMM_WORLD, &requests[tag]));
            continue;
        }
        MUST(MPI_Recv_init(in[tag], WORDS, MPI_INT, 0, tag, MPI_COMM_WORLD, &requests[tag]));
        MUST(MPI_Start(&requests[tag]));
    }
}

/* What a call for all leaves (MPI_ERR_PENDING) is waited for again, as often as it takes. */
static void all(int ignored) {
    MPI_Request requests[MANY];
    MPI_Status statuses[MANY];
    int failed = 0, left = MANY;
    post(requests, 0);
    trial_ready();
    while (left > 0) {
        int code = MPI_Waitall(MANY, requests, ignored ? MPI_STATUSES_IGNORE : statuses);
        left = 0;
        CHECK(code == MPI_SUCCESS || class_of(code) == MPI_ERR_IN_STATUS, "class %d", class_of(code));
        if (code && !ignored && !failed) check_wrong(statuses[WRONG].MPI_ERROR, &statuses[WRONG]);
        failed += code != MPI_SUCCESS;
        for (int tag = 0; tag < MANY; tag++) left += requests[tag] != MPI_REQUEST_NULL;
        if (code == MPI_SUCCESS) break;
    }
    CHECK(failed == 1 && left == 0, "%d calls have failed, %d requests are left", failed, left);
}

/* Open MPI's own returns no error for persistent ones, and says so in the status alone; and it may give up one that has failed. */
static void all_persistent(void) {
    MPI_Request requests[MANY];
    MPI_Status statuses[MANY];
    post(requests, 1);
    trial_ready();
    int code = MPI_Waitall(MANY, requests, statuses);
    CHECK(code == MPI_SUCCESS || class_of(code) == MPI_ERR_IN_STATUS, "class %d", class_of(code));
    check_wrong(statuses[WRONG].MPI_ERROR, &statuses[WRONG]);
    MUST(MPI_Wait(&requests[LATE], MPI_STATUS_IGNORE));
    for (int tag = 0; tag < MANY; tag++)
        if (tag != WRONG) MUST(MPI_Request_free(&requests[tag]));
}

/* The error of one that is waited for together with others. */
static void any_persistent(void) {
    MPI_Request requests[MANY];
    MPI_Status status;
    int index = -1, failed = 0;
    post(requests, 1);
    trial_ready();
    for (int seen = 0; seen < MANY; seen++) {
        int code = MPI_Waitany(MANY, requests, &index, &status);
        if (index == WRONG) check_wrong(code, &status), failed++;
        else CHECK(code == MPI_SUCCESS, "index %d: class %d", index, class_of(code));
    }
    CHECK(failed == 1, "%d have failed", failed);
    for (int tag = 0; tag < MANY; tag++)
        if (tag != WRONG) MUST(MPI_Request_free(&requests[tag]));
}

/* Each wait has one request in hand, and another one fails. */
static void one(void) {
    MPI_Request requests[MANY];
    MPI_Status status;
    post(requests, 0);
    trial_ready();
    MUST(MPI_Wait(&requests[LATE], &status));
    CHECK(status.MPI_TAG == LATE, "tag %d", status.MPI_TAG);
    check_wrong(MPI_Wait(&requests[WRONG], &status), &status);
    MUST(MPI_Wait(&requests[FITS], &status));
}

/* One after the other, the one that is over and right first. */
static void any(void) {
    MPI_Request requests[MANY];
    MPI_Status status;
    int index = -1, seen = 0, failed = 0;
    post(requests, 0);
    MPI_Request two[2] = {requests[LATE], MPI_REQUEST_NULL};
    trial_ready();
    MUST(MPI_Waitany(2, two, &index, &status));
    CHECK(index == 0, "index %d", index);
    requests[LATE] = MPI_REQUEST_NULL;
    for (; seen < 2; seen++) {
        int code = MPI_Waitany(MANY, requests, &index, &status);
        if (index == WRONG) check_wrong(code, &status), failed++;
        else CHECK(code == MPI_SUCCESS && index == FITS, "index %d: class %d", index, class_of(code));
    }
    CHECK(failed == 1, "%d have failed", failed);
}

/* A broadcast of more than this rank has room for, which has failed while the receive before it is waited for. Which class its error has is the library's. */
static void collective(void) {
    enum { FIRST, BROADCAST };
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int told[WORDS], failed = 0;
    MUST(MPI_Ibcast(told, WORDS, MPI_INT, 0, two, &requests[BROADCAST]));
    MUST(MPI_Irecv(in[LATE], WORDS, MPI_INT, 0, LATE, MPI_COMM_WORLD, &requests[FIRST]));
    MUST(MPI_Recv(in[FITS], WORDS, MPI_INT, 0, FITS, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    trial_ready();
    do {
        int code = MPI_Waitall(2, requests, statuses);
        CHECK(code == MPI_SUCCESS || class_of(code) == MPI_ERR_IN_STATUS, "class %d", class_of(code));
        if (code && !failed) CHECK(statuses[BROADCAST].MPI_ERROR != MPI_SUCCESS && statuses[BROADCAST].MPI_ERROR != MPI_ERR_PENDING, "class %d", class_of(statuses[BROADCAST].MPI_ERROR));
        failed += code != MPI_SUCCESS;
    } while (requests[FIRST] != MPI_REQUEST_NULL || requests[BROADCAST] != MPI_REQUEST_NULL);
    CHECK(failed == 1, "%d calls have failed", failed);
    int code = MPI_Recv(in[WRONG], WORDS, MPI_INT, 0, WRONG, MPI_COMM_WORLD, statuses);
    check_wrong(code, statuses);
}

static void some(void) {
    MPI_Request requests[MANY], last;
    MPI_Status statuses[MANY];
    int indices[MANY], count = 0, failed = 0, seen = 0;
    post(requests, 0);
    last = requests[LATE];
    trial_ready();
    MUST(MPI_Waitsome(1, &last, &count, indices, statuses));
    CHECK(count == 1 && statuses[0].MPI_TAG == LATE, "%d", count);
    for (requests[LATE] = MPI_REQUEST_NULL; seen < 2; seen += count) {
        int code = MPI_Waitsome(MANY, requests, &count, indices, statuses);
        CHECK(count > 0, "%d at once", count);
        if (count <= 0) return;
        for (int i = 0; i < count; i++) {
            if (indices[i] != WRONG) continue;
            CHECK(class_of(code) == MPI_ERR_IN_STATUS, "class %d", class_of(code));
            check_wrong(statuses[i].MPI_ERROR, &statuses[i]);
            failed++;
        }
    }
    CHECK(failed == 1, "%d have failed", failed);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    MUST(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    MUST(MPI_Comm_split(MPI_COMM_WORLD, trial_rank % BROADCASTS == 0 ? 0 : MPI_UNDEFINED, trial_rank, &two));
    if (two != MPI_COMM_NULL) MUST(MPI_Comm_set_errhandler(two, MPI_ERRORS_RETURN));
    switch (trial_rank) {
    case 0: sender(); break;
    case 1: all(0); break;
    case 2: all(1); break;
    case 3: all_persistent(); break;
    case 4: any_persistent(); break;
    case 5: one(); break;
    case 6: any(); break;
    case BROADCASTS: collective(); break;
    default: some();
    }
    if (trial_rank)
        for (int tag = 0; tag < MANY; tag++) CHECK(tag == WRONG || in[tag][WORDS - 1] == WORDS, "message %d ends with %d", tag, in[tag][WORDS - 1]);
    return trial_finish();
}
