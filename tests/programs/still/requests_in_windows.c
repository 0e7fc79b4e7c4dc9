/* Windows of requests as message rates are made of: many at once, sends that are over when they are begun, some receives of derived types, null ones between
 * them, and one that fails. Half of each is begun before the checkpoint, and all are completed after it. Some all have one tag: messages go to them in their order.
 * trial: ranks=2 */
#include "../common.h"

#define MANY 150
#define SMALL 20

static int peer, out[MANY][2], in[MANY][2];

/* All of them by one call, whose statuses are looked at. */
static void completed_at_once(MPI_Request *sends, MPI_Request *receives) {
    MPI_Status statuses[MANY];
    MUST(MPI_Waitall(MANY, receives, statuses));
    for (int i = 0; i < MANY; i++) {
        int count = -1;
        if (i % 10 == 3) {
            CHECK(statuses[i].MPI_SOURCE == MPI_ANY_SOURCE, "the status of null request %d is not empty", i);
            continue;
        }
        MUST(MPI_Get_count(&statuses[i], MPI_INT, &count));
        CHECK(statuses[i].MPI_TAG == i && statuses[i].MPI_SOURCE == peer && count == 2, "status of %d: tag %d, %d elements", i,
              statuses[i].MPI_TAG, count);
        CHECK(in[i][0] == i && in[i][1] == peer, "message %d holds %d %d", i, in[i][0], in[i][1]);
        CHECK(receives[i] == MPI_REQUEST_NULL, "receive %d is not null", i);
    }
    MUST(MPI_Waitall(MANY, sends, MPI_STATUSES_IGNORE));
    for (int i = 0; i < MANY; i++) CHECK(sends[i] == MPI_REQUEST_NULL, "send %d is not null", i);
}

static void window(MPI_Datatype pair, int hold) {
    MPI_Request sends[MANY], receives[MANY];
    for (int i = 0; i < MANY; i++) {
        out[i][0] = i, out[i][1] = trial_rank, in[i][0] = in[i][1] = -1;
        sends[i] = receives[i] = MPI_REQUEST_NULL;
    }
    for (int half = 0; half < 2; half++) {
        for (int i = half; i < MANY; i += 2) {
            if (i % 10 == 3) continue;
            if (i % 4 == 1) MUST(MPI_Irecv(in[i], 1, pair, peer, i, MPI_COMM_WORLD, &receives[i]));
            else MUST(MPI_Irecv(in[i], 2, MPI_INT, i % 4 ? peer : MPI_ANY_SOURCE, i, MPI_COMM_WORLD, &receives[i]));
        }
        for (int i = half; i < MANY; i += 2) {
            if (i % 10 != 3) MUST(MPI_Isend(out[i], 2, MPI_INT, peer, i, MPI_COMM_WORLD, &sends[i]));
        }
        if (hold && half == 0) trial_hold();
    }
    completed_at_once(sends, receives);
}

/* One message of many is too long for its receive; there may be a null one behind it. */
static void one_fails(int ignored, int null) {
    MPI_Request receives[SMALL];
    MPI_Status statuses[SMALL];
    for (int i = 0; i < SMALL; i++) {
        receives[i] = MPI_REQUEST_NULL;
        if (i != null) MUST(MPI_Irecv(in[i], i == 7 ? 1 : 2, MPI_INT, peer, i, MPI_COMM_WORLD, &receives[i]));
    }
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < SMALL; i++)
        if (i != null) MUST(MPI_Send(out[i], 2, MPI_INT, peer, i, MPI_COMM_WORLD));
    /* All of them have come: an MPI may leave the others as they are once one has failed. */
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    int code = MPI_Waitall(SMALL, receives, ignored ? MPI_STATUSES_IGNORE : statuses);
    CHECK(code == MPI_ERR_IN_STATUS, "the call says %d", code);
    for (int i = 0; i < SMALL; i++) {
        int wanted = i == 7 ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
        CHECK(ignored || statuses[i].MPI_ERROR == wanted, "request %d says %d", i, statuses[i].MPI_ERROR);
        CHECK(receives[i] == MPI_REQUEST_NULL, "receive %d is not null", i);
    }
}

enum { WAIT, TEST, WAITANY, TESTANY, WAITSOME, TESTSOME, WAITALL, TESTALL, STATUS, FREE, FORTRAN, CANCEL, FORMS };

/* A send that was begun long ago, in every way that a request can be asked in. */
static void asked(int form, MPI_Request *send) {
    MPI_Request both[2] = {MPI_REQUEST_NULL, *send};
    MPI_Status status, statuses[2];
    int flag = 0, index = -1, count = -1, indices[2] = {-1, -1};
    *send = MPI_REQUEST_NULL;
    if (form == WAIT) MUST(MPI_Wait(&both[1], &status));
    while (form == TEST && !flag) MUST(MPI_Test(&both[1], &flag, &status));
    if (form == WAITANY) MUST(MPI_Waitany(2, both, &index, &status));
    while (form == TESTANY && !flag) MUST(MPI_Testany(2, both, &index, &flag, &status));
    if (form == WAITANY || form == TESTANY) CHECK(index == 1, "index %d", index);
    if (form == WAITSOME) MUST(MPI_Waitsome(2, both, &count, indices, statuses));
    while (form == TESTSOME && count < 1) MUST(MPI_Testsome(2, both, &count, indices, statuses));
    if (form == WAITSOME || form == TESTSOME) CHECK(count == 1 && indices[0] == 1, "%d over, index %d", count, indices[0]);
    if (form == WAITALL) MUST(MPI_Waitall(2, both, statuses));
    while (form == TESTALL && !flag) MUST(MPI_Testall(2, both, &flag, statuses));
    if (form == STATUS) {
        while (!flag) MUST(MPI_Request_get_status(both[1], &flag, &status));
        CHECK(both[1] != MPI_REQUEST_NULL, "MPI_Request_get_status has ended the request");
        MUST(MPI_Wait(&both[1], MPI_STATUS_IGNORE));
    }
    if (form == FREE) MUST(MPI_Request_free(&both[1]));
    if (form == FORTRAN) {
        MPI_Request again = MPI_Request_f2c(MPI_Request_c2f(both[1]));
        CHECK(again == both[1], "another request by its Fortran number");
        MUST(MPI_Wait(&both[1], MPI_STATUS_IGNORE));
    }
    if (form == CANCEL) {
        MUST(MPI_Cancel(&both[1]));
        MUST(MPI_Wait(&both[1], &status));
        MUST(MPI_Test_cancelled(&status, &flag));
        CHECK(!flag, "a message that has gone was cancelled");
    }
    CHECK(both[1] == MPI_REQUEST_NULL, "form %d: the send is not null", form);
}

#define ORDERED 60
#define ORDER 3000

static int ordered[ORDERED][2];

/* Receives of one source and tag, of each sort: between them others begin and end, so that what one has is used again by another. */
static void in_order(MPI_Datatype pair, MPI_Request *receives) {
    for (int i = 0; i < ORDERED; i++) {
        MPI_Request own;
        ordered[i][0] = ordered[i][1] = -1;
        if (i % 5 < 3) MUST(MPI_Irecv(ordered[i], 2, MPI_INT, peer, ORDER, MPI_COMM_WORLD, &receives[i]));
        else if (i % 5 == 3) MUST(MPI_Irecv(ordered[i], 1, pair, peer, ORDER, MPI_COMM_WORLD, &receives[i]));
        else {
            MUST(MPI_Recv_init(ordered[i], 2, MPI_INT, peer, ORDER, MPI_COMM_WORLD, &receives[i]));
            MUST(MPI_Start(&receives[i]));
        }
        for (int k = 0; k < i % 4; k++) {
            int got = -1;
            MUST(MPI_Irecv(&got, 1, MPI_INT, trial_rank, ORDER + 1, MPI_COMM_WORLD, &own));
            MUST(MPI_Send(&i, 1, MPI_INT, trial_rank, ORDER + 1, MPI_COMM_WORLD));
            MUST(MPI_Wait(&own, MPI_STATUS_IGNORE));
            CHECK(got == i, "got %d for %d", got, i);
        }
    }
}

/* Messages go to the receives in the order in which these were begun. */
static void came_in_order(MPI_Request *receives) {
    for (int i = 0; i < ORDERED; i++) {
        int value[2] = {i, trial_rank};
        MUST(MPI_Send(value, 2, MPI_INT, peer, ORDER, MPI_COMM_WORLD));
    }
    MUST(MPI_Waitall(ORDERED, receives, MPI_STATUSES_IGNORE));
    for (int i = 0; i < ORDERED; i++) {
        CHECK(ordered[i][0] == i && ordered[i][1] == peer, "receive %d has message %d of %d", i, ordered[i][0], ordered[i][1]);
        if (i % 5 == 4) MUST(MPI_Request_free(&receives[i]));
        CHECK(receives[i] == MPI_REQUEST_NULL, "receive %d is not null", i);
    }
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    peer = 1 - trial_rank;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Datatype pair;
    MUST(MPI_Type_contiguous(2, MPI_INT, &pair));
    MUST(MPI_Type_commit(&pair));
    window(pair, 0);
    MPI_Request before[FORMS];
    for (int i = 0; i < FORMS; i++) MUST(MPI_Isend(out[i], 2, MPI_INT, peer, 1000 + i, MPI_COMM_WORLD, &before[i]));
    MPI_Request receives[ORDERED];
    in_order(pair, receives);
    window(pair, 1);
    came_in_order(receives);
    for (int i = 0; i < FORMS; i++) asked(i, &before[i]);
    for (int i = 0; i < FORMS; i++) MUST(MPI_Recv(in[i], 2, MPI_INT, peer, 1000 + i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < FORMS; i++) MUST(MPI_Isend(out[i], 2, MPI_INT, peer, 1000 + i, MPI_COMM_WORLD, &before[i]));
    for (int i = 0; i < FORMS; i++) asked(i, &before[i]);
    for (int i = 0; i < FORMS; i++) MUST(MPI_Recv(in[i], 2, MPI_INT, peer, 1000 + i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    window(pair, 0);
    for (int ignored = 0; ignored < 2; ignored++) {
        one_fails(ignored, SMALL);
        one_fails(ignored, 12);
    }
    MUST(MPI_Type_free(&pair));
    return trial_finish();
}
