/* One persistent receive fails among many requests of all kinds, some of which nobody has begun: who waits for some, for any or for all of them is told of that failure and of no
 * other, and the others can still be waited for, begun and freed.
 * trial: ranks=2 */
#include "../common.h"

enum { MOST = 40, TRIALS = 60 };
enum kind { SEND, RECEIVE, PERSISTENT_SEND, PERSISTENT_RECEIVE, COLLECTIVE, NONE, NOT_BEGUN, KINDS };

static int in[MOST][8], out[MOST][8], one = 1, sum[MOST];
static MPI_Comm other;

static int class_of(int code) {
    int found = -1;
    MPI_Error_class(code, &found);
    return found;
}

static MPI_Request begun(enum kind kind, int tag, int peer) {
    MPI_Request request = MPI_REQUEST_NULL;
    switch (kind) {
    case SEND: MPI_Isend(out[tag], 4, MPI_INT, peer, tag, other, &request); break;
    case RECEIVE: MPI_Irecv(in[tag], 4, MPI_INT, peer, tag, MPI_COMM_WORLD, &request); break;
    case PERSISTENT_SEND: MPI_Send_init(out[tag], 4, MPI_INT, peer, tag, other, &request); break;
    case PERSISTENT_RECEIVE:
    case NOT_BEGUN: MPI_Recv_init(in[tag], 4, MPI_INT, peer, tag, MPI_COMM_WORLD, &request); break;
    case COLLECTIVE: MPI_Iallreduce(&one, &sum[tag], 1, MPI_INT, MPI_SUM, other, &request); break;
    default: break;
    }
    if (kind == PERSISTENT_SEND || kind == PERSISTENT_RECEIVE) MPI_Start(&request);
    return request;
}

/* Waits until nothing is under way, for some or for any of them: how often the one that fails was told of. */
static int told_in_turn(int count, MPI_Request *requests, int failing, int form, MPI_Status *statuses) {
    int indices[MOST], failures = 0;
    for (;;) {
        int found = 0, code = 0, has = 0;
        if (form == 0) code = MPI_Waitany(count, requests, indices, statuses), found = indices[0] == MPI_UNDEFINED ? MPI_UNDEFINED : 1;
        if (form == 1) code = MPI_Waitsome(count, requests, &found, indices, statuses);
        if (form == 2)
            do code = MPI_Testsome(count, requests, &found, indices, statuses);
            while (found == 0 && !code);
        if (found == MPI_UNDEFINED) return failures;
        for (int i = 0; i < found; i++) has += indices[i] == failing;
        int expected = !has ? MPI_SUCCESS : form == 0 ? MPI_ERR_TRUNCATE : MPI_ERR_IN_STATUS;
        CHECK(class_of(code) == expected, "form %d tells %d, not %d", form, class_of(code), expected);
        failures += has;
    }
}

static void try_one(int number) {
    uint64_t random = trial_mix((uint64_t)number * 1000003u + 7);
    int count = 2 + (int)(random % (MOST - 1)), failing = (int)((random >> 8) % (uint64_t)count), form = number % 4, peer = 1 - trial_rank;
    enum kind kinds[MOST];
    MPI_Request requests[MOST];
    MPI_Status statuses[MOST];
    for (int i = 0; i < count; i++) {
        kinds[i] = i == failing ? PERSISTENT_RECEIVE : (enum kind)(trial_mix(random + (uint64_t)i) % KINDS);
        requests[i] = begun(kinds[i], i, peer);
    }
    if (random >> 40 & 1) MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) {
        if (kinds[i] == RECEIVE || kinds[i] == PERSISTENT_RECEIVE) MPI_Send(out[i], i == failing ? 8 : 4, MPI_INT, peer, i, MPI_COMM_WORLD);
        if (kinds[i] == SEND || kinds[i] == PERSISTENT_SEND) MPI_Recv(in[i], 8, MPI_INT, peer, i, other, MPI_STATUS_IGNORE);
    }
    if (form == 3) {
        int code = MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
        CHECK(class_of(code) == MPI_ERR_IN_STATUS, "MPI_Waitall tells %d", class_of(code));
    } else {
        int told = told_in_turn(count, requests, failing, form, statuses);
        CHECK(told == 1, "form %d has told of it %d times", form, told);
    }
    /* Some libraries give up what has failed, and what only looks so. */
    for (int i = 0; i < count; i++)
        if (requests[i] != MPI_REQUEST_NULL) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    for (int i = 0; i < count; i++)
        if (requests[i] != MPI_REQUEST_NULL) MPI_Request_free(&requests[i]);
    MPI_Barrier(other);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(other, MPI_ERRORS_RETURN);
    for (int i = 0; i < TRIALS; i++) try_one(i);
    trial_hold();
    for (int i = TRIALS; i < 2 * TRIALS; i++) try_one(i);
    return trial_finish();
}
