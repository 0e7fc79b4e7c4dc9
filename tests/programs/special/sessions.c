/* A job that is in MPI by sessions alone: groups of process sets, communicators made of them, error handlers, an intercommunicator, and what is under way on
 * them, over a checkpoint. For an MPI that has sessions.
 * trial: ranks=2,4 */
#include "../common.h"

static int errors;
static void handle_error(MPI_Session *session, int *code, ...) {
    (void)session, (void)code;
    errors++;
}

int main(void) {
    MPI_Session session, other;
    MPI_Errhandler handler;
    MPI_Info info;
    MPI_Group world, odd;
    MPI_Comm all, half = MPI_COMM_NULL, across = MPI_COMM_NULL;
    int flag = 1, sets = 0, length = 0, seen = 0, rank, size;
    char name[64], text[16] = "";

    MUST(MPI_Info_create(&info));
    MUST(MPI_Info_set(info, "thread_level", "MPI_THREAD_SINGLE"));
    MUST(MPI_Session_init(info, MPI_ERRORS_RETURN, &session));
    MUST(MPI_Session_create_errhandler(handle_error, &handler));
    MUST(MPI_Session_set_errhandler(session, handler));
    MUST(MPI_Errhandler_free(&handler));
    MUST(MPI_Info_free(&info));
    MUST(MPI_Initialized(&flag));
    CHECK(!flag, "a session is not MPI_Init");
    MUST(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &sets));
    for (int i = 0; i < sets; i++) {
        length = 0;
        MUST(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, NULL));
        CHECK(length > 1 && length <= (int)sizeof name, "%d bytes", length);
        MUST(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, name));
        seen += strcmp(name, "mpi://WORLD") == 0 || strcmp(name, "mpi://SELF") == 0;
    }
    CHECK(seen == 2, "%d of both sets", seen);
    CHECK(MPI_Group_from_session_pset(session, "nobody://HERE", &world) != MPI_SUCCESS && errors == 1, "%d errors", errors);
    MUST(MPI_Group_from_session_pset(session, "mpi://WORLD", &world));
    MUST(MPI_Session_get_pset_info(session, "mpi://WORLD", &info));
    length = sizeof text;
    MUST(MPI_Info_get_string(info, "mpi_size", &length, text, &flag));
    MUST(MPI_Info_free(&info));
    MUST(MPI_Comm_create_from_group(world, "all", MPI_INFO_NULL, MPI_ERRORS_RETURN, &all));
    MUST(MPI_Comm_rank(all, &rank));
    MUST(MPI_Comm_size(all, &size));
    CHECK(flag && atoi(text) == size, "%s processes, and %d", text, size);
    trial_rank = rank, trial_size = size;
    int odds[64], evens[64], odd_count = size / 2, even_count = size - odd_count;
    for (int i = 0; i < size; i++) *(i % 2 ? &odds[i / 2] : &evens[i / 2]) = i;
    MPI_Group even;
    MUST(MPI_Group_incl(world, odd_count, odds, &odd));
    MUST(MPI_Group_incl(world, even_count, evens, &even));
    MUST(MPI_Comm_create_from_group(rank % 2 ? odd : even, "half", MPI_INFO_NULL, MPI_ERRORS_RETURN, &half));
    MUST(MPI_Intercomm_create_from_groups(rank % 2 ? odd : even, 0, rank % 2 ? even : odd, 0, "across", MPI_INFO_NULL, MPI_ERRORS_RETURN, &across));
    /* The highest rank's message is on its way, and everybody has a sum to come. */
    int sum = 0, in = -1, out = 100 + rank;
    MPI_Request requests[2];
    MUST(MPI_Irecv(&in, 1, MPI_INT, (rank + 1) % size, 5, all, &requests[0]));
    MUST(MPI_Send(&out, 1, MPI_INT, (rank + size - 1) % size, 5, all));
    MUST(MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, half, &requests[1]));

    trial_ready();
    trial_wait();

    MUST(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK(in == 100 + (rank + 1) % size, "got %d", in);
    int expected = 0, remote = 0, both;
    for (int i = rank % 2; i < size; i += 2) expected += i;
    CHECK(sum == expected, "a sum of %d", sum);
    MUST(MPI_Comm_remote_size(across, &remote));
    CHECK(remote == (rank % 2 ? even_count : odd_count), "%d processes on the other side", remote);
    MUST(MPI_Allreduce(&out, &both, 1, MPI_INT, MPI_MAX, across));
    /* A second session, of what is there still; and the first one's handler is its own. */
    MUST(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &other));
    CHECK(MPI_Group_from_session_pset(session, "nobody://HERE", &odd) != MPI_SUCCESS && errors == 2, "%d errors", errors);
    CHECK(MPI_Group_from_session_pset(other, "nobody://HERE", &odd) != MPI_SUCCESS && errors == 2, "%d errors", errors);
    MUST(MPI_Comm_free(&across));
    MUST(MPI_Comm_free(&half));
    MUST(MPI_Comm_free(&all));
    MUST(MPI_Session_finalize(&other));
    MUST(MPI_Session_finalize(&session));
    CHECK(session == MPI_SESSION_NULL, "the session is not null");
    return trial_outcome();
}
