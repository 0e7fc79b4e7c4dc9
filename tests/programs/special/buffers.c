/* Buffers of a communicator, of a session and of the process, automatic ones among them, and flushes of them: with messages in them that nobody has received, over a
 * checkpoint and after it. These functions are looked for by name, since the library that the program was linked to may be older. For an MPI whose ABI has them.
 * trial: ranks=2 */
#include "../newer.h"

#define BYTES (512 << 10)
#define SMALL 64

static int (*comm_attach)(MPI_Comm, void *, int), (*comm_detach)(MPI_Comm, void *, int *), (*comm_flush)(MPI_Comm), (*comm_iflush)(MPI_Comm, MPI_Request *);
static int (*session_attach)(MPI_Session, void *, int), (*session_detach)(MPI_Session, void *, int *), (*session_flush)(MPI_Session),
    (*session_iflush)(MPI_Session, MPI_Request *);
static int (*buffer_flush)(void), (*buffer_iflush)(MPI_Request *);
static int (*attach_large)(void *, MPI_Count), (*detach_large)(void *, MPI_Count *);

static void look_up(void) {
    *(void **)&comm_attach = named("MPI_Comm_attach_buffer"), *(void **)&comm_detach = named("MPI_Comm_detach_buffer");
    *(void **)&comm_flush = named("MPI_Comm_flush_buffer"), *(void **)&comm_iflush = named("MPI_Comm_iflush_buffer");
    *(void **)&session_attach = named("MPI_Session_attach_buffer"), *(void **)&session_detach = named("MPI_Session_detach_buffer");
    *(void **)&session_flush = named("MPI_Session_flush_buffer"), *(void **)&session_iflush = named("MPI_Session_iflush_buffer");
    *(void **)&buffer_flush = named("MPI_Buffer_flush"), *(void **)&buffer_iflush = named("MPI_Buffer_iflush");
    *(void **)&attach_large = named("MPI_Buffer_attach_c"), *(void **)&detach_large = named("MPI_Buffer_detach_c");
}

static MPI_Comm own, automatic, of_session;
static MPI_Session session;
static char *message;
static int sent;

/* The next message, which is overwritten as soon as the call is over: the bytes are the buffer's. */
static int send(MPI_Comm on, int bytes) {
    trial_fill(message, BYTES, sent);
    int code = MPI_Bsend(message, bytes, MPI_BYTE, 1, sent, on);
    memset(message, 0, BYTES);
    if (code == MPI_SUCCESS) sent++;
    return code;
}

static void refused(int code) {
    int class = MPI_SUCCESS;
    MUST(MPI_Error_class(code, &class));
    CHECK(class == MPI_ERR_BUFFER, "class %d", class);
}

/* Messages in every sort of buffer. */
static void sends(char *buffer, int room) {
    MPI_Request request;
    refused(send(MPI_COMM_WORLD, SMALL));
    char *process = malloc(SMALL + MPI_BSEND_OVERHEAD);
    MUST(MPI_Buffer_attach(process, SMALL + MPI_BSEND_OVERHEAD));
    refused(MPI_Buffer_attach(process, SMALL));
    refused(send(automatic, BYTES)); /* As long as it has none of its own, it uses the process's, */
    MUST(comm_attach(automatic, MPI_BUFFER_AUTOMATIC, 0));
    MUST(comm_attach(own, buffer, room));
    refused(comm_attach(own, buffer, room));
    refused(send(of_session, BYTES));
    MUST(session_attach(session, MPI_BUFFER_AUTOMATIC, 0)); /* and one of a session's that of the session. */
    MUST(send(MPI_COMM_WORLD, SMALL));
    for (int i = 0; i < 3; i++) MUST(send(own, BYTES));
    refused(send(own, BYTES));
    for (int i = 0; i < 4; i++) MUST(send(automatic, BYTES));
    MUST(send(of_session, BYTES));
    trial_fill(message, BYTES, sent);
    MUST(MPI_Ibsend(message, BYTES, MPI_BYTE, 1, sent++, automatic, &request));
    MUST(MPI_Wait(&request, MPI_STATUS_IGNORE));
    memset(message, 0, BYTES);
    MUST(MPI_Bsend_init(message, BYTES, MPI_BYTE, 1, sent, automatic, &request));
    for (int i = 0; i < 2; i++, sent++) {
        trial_fill(message, BYTES, sent - i);
        MUST(MPI_Start(&request));
        MUST(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    MUST(MPI_Request_free(&request));
    MUST(MPI_Bsend(message, BYTES, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    MUST(MPI_Bsend(message, BYTES, MPI_BYTE, MPI_PROC_NULL, 0, own));
}

/* Receives what was sent since `first`, the newest first but for those with one tag. */
static void receives(int first) {
    MPI_Comm each[] = {MPI_COMM_WORLD, own, own, own, automatic, automatic, automatic, automatic, of_session, automatic, automatic, automatic};
    enum { ALL = sizeof each / sizeof each[0] };
    for (int i = ALL - 1; i >= 0; i--) {
        MPI_Status status;
        int bytes = i ? BYTES : SMALL, tag = first + (i < ALL - 1 ? i : i - 1), count = 0;
        MUST(MPI_Recv(message, BYTES, MPI_BYTE, 0, tag, each[i], &status));
        MUST(MPI_Get_count(&status, MPI_BYTE, &count));
        long wrong = trial_differs(message, bytes, tag);
        CHECK(count == bytes && wrong < 0, "message %d: %d bytes, wrong from %ld on", i, count, wrong);
    }
    sent += ALL;
}

enum { FLUSHES = 4 };

static void flushes(MPI_Request *requests) {
    MUST(buffer_iflush(&requests[0]));
    MUST(comm_iflush(own, &requests[1]));
    MUST(comm_iflush(automatic, &requests[2]));
    MUST(session_iflush(session, &requests[3]));
}

/* Each gives back what it was given. */
static void detaches(char *buffer, int room) {
    void *detached = NULL;
    int bytes = -1;
    MPI_Count many = -1;
    MUST(comm_detach(own, &detached, &bytes));
    CHECK(detached == buffer && bytes == room, "%p, %d bytes", detached, bytes);
    memset(buffer, 0, room);
    MUST(comm_detach(automatic, &detached, &bytes));
    CHECK(detached == MPI_BUFFER_AUTOMATIC, "%p", detached);
    MUST(comm_detach(automatic, &detached, &bytes));
    CHECK(detached == NULL && bytes == 0, "%p, %d bytes", detached, bytes);
    MUST(session_detach(session, &detached, &bytes));
    CHECK(detached == MPI_BUFFER_AUTOMATIC, "%p", detached);
    MUST(detach_large(&detached, &many));
    CHECK(many == SMALL + MPI_BSEND_OVERHEAD, "%lld bytes", (long long)many);
    free(detached);
}

/* More than an int holds, of which nothing is touched but what a message needs. */
static void large(void) {
    void *detached = NULL;
    MPI_Count bytes = 0, size = (MPI_Count)5 << 30;
    char *buffer = malloc(size);
    int small = 0;
    MUST(attach_large(buffer, size));
    MUST(send(MPI_COMM_WORLD, BYTES));
    MUST(buffer_flush());
    MUST(detach_large(&detached, &bytes));
    CHECK(detached == buffer && bytes == size, "%p, %lld bytes", detached, (long long)bytes);
    MUST(attach_large(buffer, size));
    MUST(MPI_Buffer_detach(&detached, &small));
    CHECK(detached == buffer && small == MPI_UNDEFINED, "%p, %d bytes", detached, small);
    free(buffer);
}

static void sender(void) {
    int room = 3 * (BYTES + MPI_BSEND_OVERHEAD), flag = 1, index = -1, number = -1, indices[FLUSHES];
    char *buffer = malloc(room);
    MPI_Request requests[FLUSHES];
    MPI_Status status, statuses[FLUSHES];
    sends(buffer, room);
    flushes(requests);
    MUST(MPI_Testall(FLUSHES, requests, &flag, MPI_STATUSES_IGNORE));
    CHECK(!flag || trial_go(), "%s", "nobody has received it");
    MUST(MPI_Test(&requests[1], &flag, MPI_STATUS_IGNORE));
    CHECK(!flag || trial_go(), "%s", "nobody has received it");
    trial_hold();
    MUST(comm_flush(own));
    MUST(MPI_Request_get_status(requests[1], &flag, MPI_STATUS_IGNORE));
    CHECK(flag, "%s", "a flush is over, and another not");
    MUST(MPI_Waitall(FLUSHES, requests, statuses));
    MUST(MPI_Test_cancelled(&statuses[2], &flag));
    CHECK(!flag, "%s", "cancelled");
    detaches(buffer, room);

    /* The same, of which nobody but the receiver has anything in between. */
    sends(buffer, room);
    flushes(requests);
    MUST(MPI_Wait(&requests[2], &status));
    for (int left = FLUSHES - 1; left > 0; left--) {
        MUST(MPI_Waitany(FLUSHES, requests, &index, &status));
        CHECK(index >= 0 && index < FLUSHES && requests[index] == MPI_REQUEST_NULL, "index %d", index);
    }
    MUST(MPI_Waitany(FLUSHES, requests, &index, &status));
    CHECK(index == MPI_UNDEFINED, "index %d", index);
    MUST(session_flush(session));
    detaches(buffer, room);

    sends(buffer, room);
    flushes(requests);
    MUST(MPI_Request_free(&requests[1]));
    for (int left = FLUSHES - 1; left > 0; left -= number) {
        MUST(MPI_Waitsome(FLUSHES, requests, &number, indices, statuses));
        CHECK(number > 0, "%d", number);
        if (number <= 0) break;
    }
    MUST(MPI_Waitsome(FLUSHES, requests, &number, indices, statuses));
    CHECK(number == MPI_UNDEFINED, "%d", number);
    detaches(buffer, room);
    MUST(buffer_iflush(&requests[0])); /* There is none. */
    MUST(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    free(buffer);
    large();
    /* What a communicator's buffer holds when it is freed still comes, and what is in the process's when MPI ends. */
    MUST(comm_attach(automatic, MPI_BUFFER_AUTOMATIC, 0));
    MUST(send(automatic, BYTES));
    MUST(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0));
    MUST(send(MPI_COMM_WORLD, BYTES));
}

static void receiver(void) {
    trial_hold();
    receives(0);
    for (int round = 0; round < 2; round++) {
        trial_compute(0.1);
        receives(sent);
    }
    MPI_Comm each[] = {MPI_COMM_WORLD, automatic, MPI_COMM_WORLD};
    for (int i = 0; i < 3; i++, sent++) {
        MUST(MPI_Recv(message, BYTES, MPI_BYTE, 0, sent, each[i], MPI_STATUS_IGNORE));
        CHECK(trial_differs(message, BYTES, sent) < 0, "message %d", sent);
    }
}

int main(int argc, char **argv) {
    MPI_Group group;
    trial_start(&argc, &argv);
    look_up();
    message = malloc(BYTES);
    MUST(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    MUST(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    MUST(MPI_Comm_dup(MPI_COMM_WORLD, &own));
    MUST(MPI_Comm_dup(MPI_COMM_WORLD, &automatic));
    MUST(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    MUST(MPI_Comm_create_from_group(group, "buffers", MPI_INFO_NULL, MPI_ERRORS_RETURN, &of_session));
    MUST(MPI_Group_free(&group));
    if (trial_rank == 0) sender();
    else receiver();
    MUST(MPI_Comm_free(&own));
    MUST(MPI_Comm_free(&automatic));
    MUST(MPI_Comm_free(&of_session));
    MUST(MPI_Session_finalize(&session));
    return trial_finish();
}
