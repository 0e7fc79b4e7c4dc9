/* Members of operations in place give equal data in different layouts: plain, in one element, and by addresses from MPI_BOTTOM. In MPI_Reduce_scatter, a member
 * without a block is not in place when the others are. Small and large data.
 * trial: ranks=3 */
#include "../common.h"

enum { LARGEST = 30000 };
static int values[3 * LARGEST];

static int value(int round, int from, int i) { return round * 7919 + from * 1000003 + i; }

static void fill(int round, int count) {
    for (int i = 0; i < trial_size * count; i++) values[i] = value(round, trial_rank, i);
}

/* An operation of blocks of `count` numbers, each member with a layout of its own. */
static void operation(int round, int count) {
    MPI_Datatype block, absolute;
    MPI_Aint address;
    int how = (trial_rank + round) % 3, gathers = round % 2;
    MUST(MPI_Type_contiguous(count, MPI_INT, &block));
    MUST(MPI_Type_commit(&block));
    MUST(MPI_Get_address(values, &address));
    MUST(MPI_Type_create_hindexed(1, &count, &address, MPI_INT, &absolute));
    MUST(MPI_Type_create_resized(absolute, 0, (MPI_Aint)sizeof(int) * count, &absolute));
    MUST(MPI_Type_commit(&absolute));
    void *buffer = how == 2 ? MPI_BOTTOM : values;
    int elements = how == 0 ? count : 1;
    MPI_Datatype type = how == 0 ? MPI_INT : how == 1 ? block : absolute;
    fill(round, count);
    if (gathers) MUST(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, buffer, elements, type, MPI_COMM_WORLD));
    else MUST(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, buffer, elements, type, MPI_COMM_WORLD));
    for (int i = 0; i < trial_size * count; i++) {
        int from = i / count, at = gathers ? i : trial_rank * count + i % count;
        CHECK(values[i] == value(round, from, at), "round %d: element %d is %d and not %d", round, i, values[i], value(round, from, at));
    }
    MUST(MPI_Type_free(&block));
    MUST(MPI_Type_free(&absolute));
}

static void reduce_scatter(int round, int count) {
    int counts[3] = {count, 2 * count, 0}, place = trial_rank == 0 ? 0 : count, *own = malloc(sizeof(int) * 3 * LARGEST);
    fill(round, count);
    memcpy(own, values, sizeof(int) * 3 * (size_t)count);
    if (trial_rank == 2) MUST(MPI_Reduce_scatter(own, NULL, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    else MUST(MPI_Reduce_scatter(MPI_IN_PLACE, values, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    for (int i = 0; i < counts[trial_rank]; i++) {
        int expected = 0;
        for (int from = 0; from < trial_size; from++) expected += value(round, from, place + i);
        CHECK(values[i] == expected, "round %d: sum %d is %d and not %d", round, i, values[i], expected);
    }
    free(own);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    const int counts[] = {1, 40, 3000, LARGEST};
    for (int half = 0; half < 2; half++) {
        for (int round = 0; round < 12; round++) {
            operation(round, counts[round % 4]);
            reduce_scatter(round, counts[round % 4]);
        }
        if (half == 0) trial_hold();
    }
    return trial_finish();
}
