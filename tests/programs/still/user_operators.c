/* User-defined operators, one of them not commutative and on a derived type, work afterwards; one is pending.
 * trial: ranks=2,4 */
#include "../common.h"

/* Affine maps x -> a*x + b over the integers mod a prime: composing them depends on the order. */
struct map {
    unsigned a, b;
};

#define PRIME 1000003u

static int composed;

static void compose(void *in, void *inout, int *count, MPI_Datatype *type) {
    struct map *first = in, *then = inout;
    int bytes = 0;
    MPI_Type_size(*type, &bytes);
    if (bytes != (int)sizeof(struct map)) trial_failures++;
    for (int i = 0; i < *count; i++) {
        struct map result = {(unsigned)((uint64_t)first[i].a * then[i].a % PRIME),
                             (unsigned)(((uint64_t)then[i].a * first[i].b + then[i].b) % PRIME)};
        then[i] = result;
        composed++;
    }
}

static void furthest(void *in, void *inout, int *count, MPI_Datatype *type) {
    int *a = in, *b = inout;
    (void)type;
    for (int i = 0; i < *count; i++)
        if (abs(a[i]) > abs(b[i])) b[i] = a[i];
}

static struct map map_of(int rank, int i) { return (struct map){3u + rank * 7u + i, 11u + rank * 13u + i}; }

static void check_maps(const struct map *got, int ranks, const char *which) {
    for (int i = 0; i < 10; i++) {
        struct map expected = map_of(0, i);
        for (int rank = 1; rank < ranks; rank++) {
            struct map next = map_of(rank, i);
            expected.b = (unsigned)(((uint64_t)next.a * expected.b + next.b) % PRIME);
            expected.a = (unsigned)((uint64_t)expected.a * next.a % PRIME);
        }
        CHECK(got[i].a == expected.a && got[i].b == expected.b, "%s: map %d is %u,%u", which, i, got[i].a, got[i].b);
    }
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    MPI_Op ordered, any_order;
    MPI_Datatype map;
    MPI_Request request;
    struct map out[10], in[10], pending[10];
    int values[4], results[4], commute = -1;
    MUST(MPI_Type_contiguous(2, MPI_UNSIGNED, &map));
    MUST(MPI_Type_commit(&map));
    MUST(MPI_Op_create(compose, 0, &ordered));
    MUST(MPI_Op_create(furthest, 1, &any_order));
    for (int i = 0; i < 10; i++) out[i] = map_of(trial_rank, i);
    MUST(MPI_Allreduce(out, in, 10, map, ordered, MPI_COMM_WORLD));
    check_maps(in, trial_size, "before");
    int late = trial_rank == 0;
    for (int stage = 0; stage < 2; stage++) {
        if (stage == late) MUST(MPI_Iallreduce(out, pending, 10, map, ordered, MPI_COMM_WORLD, &request));
        if (stage == 0) trial_hold();
    }
    MUST(MPI_Wait(&request, MPI_STATUS_IGNORE));
    check_maps(pending, trial_size, "pending");
    composed = 0;
    MUST(MPI_Scan(out, in, 10, map, ordered, MPI_COMM_WORLD));
    check_maps(in, trial_rank + 1, "scan");
    CHECK(trial_rank == 0 || composed > 0, "the operator did not run here");
    for (int i = 0; i < 10; i++) in[i] = map_of(1, i);
    MUST(MPI_Reduce_local(out, in, 10, map, ordered));
    MUST(MPI_Op_commutative(ordered, &commute));
    CHECK(commute == 0, "ordered: commutative %d", commute);
    MUST(MPI_Op_commutative(any_order, &commute));
    CHECK(commute == 1, "any_order: commutative %d", commute);
    for (int i = 0; i < 4; i++) values[i] = (trial_rank + 1) * (i % 2 ? -1 : 1) * (i + 1);
    MUST(MPI_Allreduce(values, results, 4, MPI_INT, any_order, MPI_COMM_WORLD));
    for (int i = 0; i < 4; i++)
        CHECK(results[i] == trial_size * (i % 2 ? -1 : 1) * (i + 1), "furthest %d is %d", i, results[i]);
    MUST(MPI_Op_free(&ordered));
    MUST(MPI_Op_free(&any_order));
    CHECK(ordered == MPI_OP_NULL, "freed, not null");
    MUST(MPI_Type_free(&map));
    return trial_finish();
}
