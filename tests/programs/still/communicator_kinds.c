/* Communicators made in every way keep members, order and separation; each works, and new ones can be made of them.
 * trial: ranks=2,4 safe_states=clock,barrier */
#include "../common.h"

#define KINDS 9

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    MPI_Comm all[KINDS];
    MPI_Group world, odd;
    MPI_Info info;
    MPI_Request request;
    int n = trial_size, r = trial_rank;
    MUST(MPI_Comm_dup(MPI_COMM_WORLD, &all[0]));
    MUST(MPI_Comm_idup(MPI_COMM_WORLD, &all[1], &request));
    MUST(MPI_Wait(&request, MPI_STATUS_IGNORE));
    MUST(MPI_Info_create(&info));
    MUST(MPI_Info_set(info, "a_key", "a_value"));
    MUST(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &all[2]));
    MUST(MPI_Info_free(&info));
    MUST(MPI_Comm_split(MPI_COMM_WORLD, r % 2, -r, &all[3]));
    MUST(MPI_Comm_split(MPI_COMM_WORLD, r == 0 ? MPI_UNDEFINED : 1, r, &all[4]));
    MUST(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &all[5]));
    MUST(MPI_Comm_group(MPI_COMM_WORLD, &world));
    int ranks[4], count = 0;
    for (int i = n - 1; i >= 0; i--)
        if (i % 2) ranks[count++] = i;
    MUST(MPI_Group_incl(world, count, ranks, &odd));
    MUST(MPI_Comm_create(MPI_COMM_WORLD, odd, &all[6]));
    all[7] = MPI_COMM_NULL;
    if (r % 2) MUST(MPI_Comm_create_group(MPI_COMM_WORLD, odd, 3, &all[7]));
    MUST(MPI_Comm_dup(MPI_COMM_SELF, &all[8]));

    /* Messages in flight from rank 0 to itself, one on each of its communicators. */
    MPI_Request sends[KINDS];
    int out[KINDS];
    for (int i = 0; i < KINDS; i++) {
        out[i] = 100 * r + i, sends[i] = MPI_REQUEST_NULL;
        int me = 0;
        if (all[i] == MPI_COMM_NULL) continue;
        MUST(MPI_Comm_rank(all[i], &me));
        MUST(MPI_Isend(&out[i], 1, MPI_INT, me, 1, all[i], &sends[i]));
    }
    trial_hold();
    for (int i = KINDS - 1; i >= 0; i--) {
        int got = -1;
        if (all[i] == MPI_COMM_NULL) continue;
        MUST(MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 1, all[i], MPI_STATUS_IGNORE));
        CHECK(got == 100 * r + i, "communicator %d gave the message %d", i, got);
    }
    MUST(MPI_Waitall(KINDS, sends, MPI_STATUSES_IGNORE));

    int sizes[KINDS] = {n, n, n, 0, n - 1, n, n / 2, n / 2, 1};
    int mine[KINDS] = {r, r, r, 0, r - 1, r, 0, 0, 0};
    for (int i = 0; i < n; i++) {
        sizes[3] += i % 2 == r % 2;
        mine[3] += i % 2 == r % 2 && i > r;
    }
    mine[6] = mine[7] = mine[3];
    for (int i = 0; i < KINDS; i++) {
        int absent = (i == 4 && r == 0) || ((i == 6 || i == 7) && r % 2 == 0);
        CHECK((all[i] == MPI_COMM_NULL) == absent, "communicator %d is null: %d", i, all[i] == MPI_COMM_NULL);
        if (absent) continue;
        int size = -1, rank = -1, sum = -1, expected = 0, inter = -1;
        MUST(MPI_Comm_size(all[i], &size));
        MUST(MPI_Comm_rank(all[i], &rank));
        MUST(MPI_Comm_test_inter(all[i], &inter));
        CHECK(size == sizes[i] && rank == mine[i] && !inter, "communicator %d: rank %d of %d", i, rank, size);
        int value = rank + 1;
        MUST(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, all[i]));
        for (int k = 1; k <= size; k++) expected += k;
        CHECK(sum == expected, "communicator %d: sum %d", i, sum);
        int world_rank = r;
        MUST(MPI_Bcast(&world_rank, 1, MPI_INT, size - 1, all[i]));
        int last = i == 3 || i == 6 || i == 7 ? r % 2 : i == 8 ? r : n - 1;
        CHECK(world_rank == last, "communicator %d: the last rank is %d", i, world_rank);
    }
    int result = -1;
    MUST(MPI_Comm_compare(all[0], all[1], &result));
    CHECK(result == MPI_CONGRUENT, "duplicates compare as %d", result);
    MUST(MPI_Comm_compare(all[0], all[0], &result));
    CHECK(result == MPI_IDENT, "one with itself compares as %d", result);
    MUST(MPI_Comm_compare(all[0], all[8], &result));
    CHECK(result == MPI_UNEQUAL, "world and self compare as %d", result);
    MUST(MPI_Comm_get_info(all[2], &info));
    CHECK(info != MPI_INFO_NULL, "no info");
    MUST(MPI_Info_free(&info));

    /* New ones from old ones. */
    MPI_Comm again;
    MUST(MPI_Comm_split(all[3], 0, r, &again));
    int rank = -1;
    MUST(MPI_Comm_rank(again, &rank));
    CHECK(rank == r / 2, "split once more: rank %d", rank);
    MUST(MPI_Comm_compare(again, all[3], &result));
    CHECK(result == (sizes[3] == 1 ? MPI_CONGRUENT : MPI_SIMILAR), "reordered compares as %d", result);
    MUST(MPI_Comm_free(&again));
    for (int i = 0; i < KINDS; i++)
        if (all[i] != MPI_COMM_NULL) MUST(MPI_Comm_free(&all[i]));
    MUST(MPI_Group_free(&odd));
    MUST(MPI_Group_free(&world));
    return trial_finish();
}
