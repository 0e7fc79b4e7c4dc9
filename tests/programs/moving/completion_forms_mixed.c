/* Rounds of requests of every sort - received, sent, collective, persistent (started or not), generalized, null - that are
 * completed by one of the forms that take several: any, all or some, tested or waited for.
 * trial: ranks=2,3 */
#include "../moving.h"

enum { RECEIVE, SEND, COLLECTIVE, RECEIVE_AGAIN, SEND_AGAIN, GENERALIZED, NOTHING, SORTS };
enum { TESTANY, WAITANY, TESTALL, TESTSOME, WAITSOME, WAITALL, FORMS };

/* More requests than a call looks at in the short way. */
#define MANY 80
#define TAG_AGAIN 5
#define TAG_GENERALIZED 99

static MPI_Request requests[MANY];
static uint64_t sent, got, sent_again, got_again, value, sum;
static int told[MANY], next, previous, freed;
static int begun[SORTS];

static int query(void *state, MPI_Status *status) {
    MPI_Status_set_elements(status, MPI_BYTE, 3);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = TAG_GENERALIZED;
    return *(int *)state == 42 ? MPI_SUCCESS : MPI_ERR_OTHER;
}
static int end(void *state) {
    (void)state;
    freed++;
    return MPI_SUCCESS;
}
static int cancel(void *state, int complete) {
    (void)state, (void)complete;
    return MPI_SUCCESS;
}

static void begin(uint64_t round, MPI_Comm messages, MPI_Comm collectives) {
    static int state = 42;
    int again = (int)(round / FORMS % 3), generalized = round / (3 * FORMS) % 4 == 1;
    memset(told, 0, sizeof told);
    sent = trial_mix(round * 100 + trial_rank), sent_again = ~sent;
    got = got_again = sum = 0;
    value = trial_mix(round * 10 + trial_rank) >> 8;
    int tag = (int)(round % 3);
    MUST(MPI_Irecv(&got, 1, MPI_UINT64_T, previous, tag, messages, &requests[RECEIVE]));
    if (again == 2) MUST(MPI_Start(&requests[RECEIVE_AGAIN]));
    MUST(MPI_Iallreduce(&value, &sum, 1, MPI_UINT64_T, MPI_SUM, collectives, &requests[COLLECTIVE]));
    /* Some ranks find their messages there, some wait. */
    if (round % 7 == (uint64_t)trial_rank) trial_compute(0.0003);
    MUST(MPI_Isend(&sent, 1, MPI_UINT64_T, next, tag, messages, &requests[SEND]));
    if (again == 2) MUST(MPI_Start(&requests[SEND_AGAIN]));
    if (generalized) {
        MUST(MPI_Grequest_start(query, end, cancel, &state, &requests[GENERALIZED]));
        MUST(MPI_Grequest_complete(requests[GENERALIZED]));
    }
    for (int sort = 0; sort < SORTS; sort++) begun[sort] = sort <= COLLECTIVE;
    begun[RECEIVE_AGAIN] = begun[SEND_AGAIN] = again == 2;
    begun[GENERALIZED] = generalized;
}

/* One more is over; `status` is null where it was ignored. */
static void tell(int index, const MPI_Status *status) {
    CHECK(index >= 0 && index < MANY, "index %d", index);
    if (index < 0 || index >= MANY) return;
    told[index]++;
    if (!status) return;
    int count = -1;
    if (index == RECEIVE || index == RECEIVE_AGAIN) {
        MUST(MPI_Get_count(status, MPI_UINT64_T, &count));
        CHECK(status->MPI_SOURCE == previous && count == 1, "%d from %d", count, status->MPI_SOURCE);
        CHECK(index == RECEIVE || status->MPI_TAG == TAG_AGAIN, "tag %d", status->MPI_TAG);
    }
    if (index == GENERALIZED) {
        MUST(MPI_Get_count(status, MPI_BYTE, &count));
        CHECK(count == 3 && status->MPI_TAG == TAG_GENERALIZED, "generalized: %d, tag %d", count, status->MPI_TAG);
    }
}

/* What was begun is told one by one, until there is nothing to tell. */
static void any(int count, int waits, int ignores) {
    for (;;) {
        int index = -1, flag = 0;
        MPI_Status status;
        MPI_Status *place = ignores ? MPI_STATUS_IGNORE : &status;
        if (waits) MUST(MPI_Waitany(count, requests, &index, place));
        while (!waits && !flag) MUST(MPI_Testany(count, requests, &index, &flag, place));
        if (index == MPI_UNDEFINED) return;
        tell(index, ignores ? NULL : &status);
    }
}

static void some(int count, int waits, int ignores) {
    for (;;) {
        int told_now = 0, indices[MANY];
        MPI_Status statuses[MANY];
        MPI_Status *place = ignores ? MPI_STATUSES_IGNORE : statuses;
        if (waits) MUST(MPI_Waitsome(count, requests, &told_now, indices, place));
        while (!waits && told_now == 0) MUST(MPI_Testsome(count, requests, &told_now, indices, place));
        if (told_now == MPI_UNDEFINED) return;
        CHECK(told_now > 0 && told_now <= SORTS, "%d at once", told_now);
        for (int i = 0; i < told_now && i < SORTS; i++) tell(indices[i], ignores ? NULL : &statuses[i]);
    }
}

static void all(int count, int waits, int ignores) {
    int flag = 0;
    MPI_Status statuses[MANY];
    MPI_Status *place = ignores ? MPI_STATUSES_IGNORE : statuses;
    if (waits) MUST(MPI_Waitall(count, requests, place));
    while (!waits && !flag) MUST(MPI_Testall(count, requests, &flag, place));
    for (int i = 0; i < count; i++) {
        if (i < SORTS && begun[i]) {
            tell(i, ignores ? NULL : &statuses[i]);
        } else if (!ignores) {
            CHECK(statuses[i].MPI_SOURCE == MPI_ANY_SOURCE && statuses[i].MPI_TAG == MPI_ANY_TAG, "status %d is not empty", i);
        }
    }
}

static void check(uint64_t round) {
    uint64_t expected = 0;
    for (int i = 0; i < trial_size; i++) expected += trial_mix(round * 10 + i) >> 8;
    CHECK(got == trial_mix(round * 100 + previous), "round %d: message", (int)round);
    CHECK(!begun[RECEIVE_AGAIN] || got_again == ~got, "round %d: persistent message", (int)round);
    CHECK(sum == expected, "round %d: sum", (int)round);
    for (int i = 0; i < MANY; i++) {
        int times = i < SORTS && begun[i], persistent = i == RECEIVE_AGAIN || i == SEND_AGAIN;
        CHECK(told[i] == times, "round %d: request %d told %d times", (int)round, i, told[i]);
        CHECK(persistent == (requests[i] != MPI_REQUEST_NULL), "round %d: request %d", (int)round, i);
    }
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    MPI_Comm messages, collectives;
    MUST(MPI_Comm_dup(MPI_COMM_WORLD, &messages));
    MUST(MPI_Comm_dup(MPI_COMM_WORLD, &collectives));
    next = (trial_rank + 1) % trial_size, previous = (trial_rank + trial_size - 1) % trial_size;
    for (int i = 0; i < MANY; i++) requests[i] = MPI_REQUEST_NULL;
    MUST(MPI_Recv_init(&got_again, 1, MPI_UINT64_T, previous, TAG_AGAIN, messages, &requests[RECEIVE_AGAIN]));
    MUST(MPI_Send_init(&sent_again, 1, MPI_UINT64_T, next, TAG_AGAIN, messages, &requests[SEND_AGAIN]));
    int generalized = 0;
    for (uint64_t round = 0; moving_agree(round, MPI_COMM_WORLD); round++) {
        begin(round, messages, collectives);
        generalized += begun[GENERALIZED];
        int count = round % 11 == 0 ? MANY : SORTS, ignores = round % 4 == 3, form = (int)(round % FORMS);
        if (form == TESTANY || form == WAITANY) any(count, form == WAITANY, ignores);
        if (form == TESTALL || form == WAITALL) all(count, form == WAITALL, ignores);
        if (form == TESTSOME || form == WAITSOME) some(count, form == WAITSOME, ignores);
        check(round);
    }
    CHECK(freed == generalized, "%d generalized requests freed of %d", freed, generalized);
    MUST(MPI_Request_free(&requests[RECEIVE_AGAIN]));
    MUST(MPI_Request_free(&requests[SEND_AGAIN]));
    MUST(MPI_Comm_free(&messages));
    MUST(MPI_Comm_free(&collectives));
    return trial_finish();
}
