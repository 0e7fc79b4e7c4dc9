/* An intercommunicator with messages in flight and a pending receive; its collectives and its merging afterwards.
 * trial: ranks=2,3,4 safe_states=clock,barrier */
#include "../common.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int side = trial_rank % 2, remote_leader = side ? 0 : 1, size = -1, remote = -1, local_rank = -1;
    MPI_Comm local, inter, copy, merged;
    MPI_Request request;
    MUST(MPI_Comm_split(MPI_COMM_WORLD, side, trial_rank, &local));
    MUST(MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, remote_leader, 11, &inter));
    MUST(MPI_Comm_dup(inter, &copy));
    MUST(MPI_Intercomm_merge(inter, side == 0, &merged));
    MUST(MPI_Comm_size(inter, &size));
    MUST(MPI_Comm_remote_size(inter, &remote));
    MUST(MPI_Comm_rank(inter, &local_rank));

    /* Local rank 0 of each side hears from rank 0 of the other. */
    int sent = 500 + side, got = -1, pending = -1, value = 600 + side;
    if (local_rank == 0) {
        MUST(MPI_Send(&sent, 1, MPI_INT, 0, 1, inter));
        MUST(MPI_Irecv(&pending, 1, MPI_INT, 0, 2, copy, &request));
    }
    trial_hold();
    if (local_rank == 0) {
        MUST(MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 1, inter, MPI_STATUS_IGNORE));
        CHECK(got == 500 + !side, "got %d", got);
        MUST(MPI_Send(&value, 1, MPI_INT, 0, 2, copy));
        MUST(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(pending == 600 + !side, "got %d on the duplicate", pending);
    }
    int flag = 0, now = -1, rank = -1;
    MUST(MPI_Comm_test_inter(inter, &flag));
    MUST(MPI_Comm_size(inter, &now));
    CHECK(flag && now == size, "size %d, was %d", now, size);
    MUST(MPI_Comm_remote_size(inter, &now));
    CHECK(now == remote, "remote size %d, was %d", now, remote);
    MPI_Group group;
    MUST(MPI_Comm_remote_group(inter, &group));
    MUST(MPI_Group_size(group, &now));
    CHECK(now == remote, "remote group of %d", now);
    MUST(MPI_Group_free(&group));

    /* The sum of the other side's world ranks. */
    int sum = -1, expected = 0;
    for (int i = 0; i < trial_size; i++) expected += i % 2 != side ? i : 0;
    MUST(MPI_Allreduce(&trial_rank, &sum, 1, MPI_INT, MPI_SUM, inter));
    CHECK(sum == expected, "sum of the other side is %d", sum);
    int word = 42 + trial_rank, root = side == 0 ? (local_rank == 0 ? MPI_ROOT : MPI_PROC_NULL) : 0;
    MUST(MPI_Bcast(&word, 1, MPI_INT, root, copy));
    CHECK(word == (side == 0 ? 42 + trial_rank : 42), "word %d", word);
    MUST(MPI_Barrier(inter));

    MUST(MPI_Comm_rank(merged, &rank));
    int odd = trial_size / 2;
    CHECK(rank == (side ? trial_rank / 2 : odd + trial_rank / 2), "rank %d in the merged one", rank);
    MUST(MPI_Allreduce(&trial_rank, &sum, 1, MPI_INT, MPI_SUM, merged));
    CHECK(sum == trial_size * (trial_size - 1) / 2, "sum over the merged one is %d", sum);
    MPI_Comm again;
    MUST(MPI_Intercomm_merge(copy, side, &again));
    MUST(MPI_Comm_rank(again, &rank));
    CHECK(rank == (side ? trial_size - odd + trial_rank / 2 : trial_rank / 2), "merged again: rank %d", rank);
    MUST(MPI_Comm_free(&again));
    MUST(MPI_Comm_free(&merged));
    MUST(MPI_Comm_free(&copy));
    MUST(MPI_Comm_free(&inter));
    MUST(MPI_Comm_free(&local));
    return trial_finish();
}
