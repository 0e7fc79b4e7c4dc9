/* Groups made in every way keep their members and their order; new ones can be made of them.
 * trial: ranks=4 */
#include "../common.h"

static void members(MPI_Group group, MPI_Group world, int count, const int *expected, const char *which) {
    int size = -1, ranks[8], translated[8];
    MUST(MPI_Group_size(group, &size));
    CHECK(size == count, "%s has %d members", which, size);
    for (int i = 0; i < count; i++) ranks[i] = i;
    MUST(MPI_Group_translate_ranks(group, count, ranks, world, translated));
    for (int i = 0; i < count; i++) CHECK(translated[i] == expected[i], "%s: member %d is %d", which, i, translated[i]);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    MPI_Group world, some, others, ranges, all_but, both, common, rest, empty;
    int picked[2] = {3, 1}, left[2] = {1, 2}, range[1][3] = {{3, 0, -2}}, result = -1;
    MUST(MPI_Comm_group(MPI_COMM_WORLD, &world));
    MUST(MPI_Group_incl(world, 2, picked, &some));
    MUST(MPI_Group_incl(world, 2, left, &others));
    MUST(MPI_Group_range_incl(world, 1, range, &ranges));
    MUST(MPI_Group_excl(world, 1, picked, &all_but));
    MUST(MPI_Group_union(some, others, &both));
    MUST(MPI_Group_intersection(some, others, &common));
    MUST(MPI_Group_difference(some, others, &rest));
    MUST(MPI_Group_incl(world, 0, NULL, &empty));
    trial_hold();
    members(world, world, 4, (int[]){0, 1, 2, 3}, "world");
    members(some, world, 2, (int[]){3, 1}, "incl");
    members(ranges, world, 2, (int[]){3, 1}, "range_incl");
    members(all_but, world, 3, (int[]){0, 1, 2}, "excl");
    members(both, world, 3, (int[]){3, 1, 2}, "union");
    members(common, world, 1, (int[]){1}, "intersection");
    members(rest, world, 1, (int[]){3}, "difference");
    members(empty, world, 0, NULL, "empty");
    MUST(MPI_Group_compare(some, ranges, &result));
    CHECK(result == MPI_IDENT, "same members in the same order compare as %d", result);
    MUST(MPI_Group_compare(some, others, &result));
    CHECK(result == MPI_UNEQUAL, "others compare as %d", result);
    MUST(MPI_Group_compare(empty, MPI_GROUP_EMPTY, &result));
    CHECK(result == MPI_IDENT, "empty ones compare as %d", result);
    int rank = -1;
    MUST(MPI_Group_rank(some, &rank));
    CHECK(rank == (trial_rank == 3 ? 0 : trial_rank == 1 ? 1 : MPI_UNDEFINED), "rank %d", rank);
    MPI_Group made;
    int drop[1][3] = {{0, 1, 1}};
    MUST(MPI_Group_range_excl(both, 1, drop, &made));
    members(made, world, 1, (int[]){2}, "range_excl of a union");
    MPI_Comm comm;
    MUST(MPI_Comm_create(MPI_COMM_WORLD, both, &comm));
    CHECK((comm == MPI_COMM_NULL) == (trial_rank == 0), "membership");
    if (comm != MPI_COMM_NULL) {
        int first = trial_rank;
        MUST(MPI_Bcast(&first, 1, MPI_INT, 0, comm));
        CHECK(first == 3, "rank 0 of the union is %d", first);
        MPI_Group its;
        MUST(MPI_Comm_group(comm, &its));
        MUST(MPI_Group_compare(its, both, &result));
        CHECK(result == MPI_IDENT, "the communicator's group compares as %d", result);
        MUST(MPI_Group_free(&its));
        MUST(MPI_Comm_free(&comm));
    }
    MPI_Group *all[] = {&world, &some, &others, &ranges, &all_but, &both, &common, &rest, &made};
    for (int i = 0; i < 9; i++) {
        MUST(MPI_Group_free(all[i]));
        CHECK(*all[i] == MPI_GROUP_NULL, "freed, not null");
    }
    return trial_finish();
}
