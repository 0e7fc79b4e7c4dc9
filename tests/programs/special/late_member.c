/* One member of a collective operation computes (until `go`) while all others are in it. Arguments: the operation's name (as in collectives.h, or
 * split, dup, create, free, finalize), the late rank, the root, the number of elements, and "in_place" for MPI_IN_PLACE.
 * trial: ranks=3 */
#include "../collectives.h"

static int kind_of(const char *name) {
    for (int kind = 0; kind < ALL_KINDS; kind++)
        if (strcmp(name, kind_names[kind]) == 0) return kind;
    return -1;
}

/* What is in place has its input where its result will be. */
static void in_place(enum kind kind, int *values, int count, int root, MPI_Comm comm) {
    switch (kind) {
    case ALLREDUCE: MUST(MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_INT, MPI_SUM, comm)); break;
    case REDUCE:
        if (trial_rank == root) MUST(MPI_Reduce(MPI_IN_PLACE, values, count, MPI_INT, MPI_SUM, root, comm));
        else MUST(MPI_Reduce(values, NULL, count, MPI_INT, MPI_SUM, root, comm));
        break;
    case SCAN: MUST(MPI_Scan(MPI_IN_PLACE, values, count, MPI_INT, MPI_SUM, comm)); break;
    case EXSCAN: MUST(MPI_Exscan(MPI_IN_PLACE, values, count, MPI_INT, MPI_SUM, comm)); break;
    case REDUCE_SCATTER_BLOCK:
        MUST(MPI_Reduce_scatter_block(MPI_IN_PLACE, values, count / trial_size, MPI_INT, MPI_SUM, comm));
        break;
    case ALLTOALL: MUST(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, values, count / trial_size, MPI_INT, comm)); break;
    case ALLGATHER: MUST(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, values, count / trial_size, MPI_INT, comm)); break;
    case GATHER:
        if (trial_rank == root)
            MUST(MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, values, count / trial_size, MPI_INT, root, comm));
        else MUST(MPI_Gather(values, count / trial_size, MPI_INT, NULL, 0, MPI_INT, root, comm));
        break;
    case SCATTER:
        if (trial_rank == root)
            MUST(MPI_Scatter(values, count / trial_size, MPI_INT, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, root, comm));
        else MUST(MPI_Scatter(NULL, 0, MPI_INT, values, count / trial_size, MPI_INT, root, comm));
        break;
    default: CHECK(0, "%s has nothing in place", kind_names[kind]);
    }
}

/* Every element of an operation in place, with rank r's element i being r + 3 i. */
static void in_place_check(enum kind kind, const int *values, int count, int root) {
    int size = trial_size, rank = trial_rank, block = count / size, all = size * (size - 1) / 2;
    for (int i = 0; i < count; i++) {
        int expected = rank + 3 * i;
        switch (kind) {
        case ALLREDUCE: expected = all + 3 * i * size; break;
        case REDUCE: if (rank == root) expected = all + 3 * i * size; break;
        case SCAN: expected = rank * (rank + 1) / 2 + 3 * i * (rank + 1); break;
        case EXSCAN: if (rank > 0) expected = rank * (rank - 1) / 2 + 3 * i * rank; break;
        case REDUCE_SCATTER_BLOCK: if (i >= block) return; expected = all + 3 * (rank * block + i) * size; break;
        case ALLTOALL: if (i >= block * size) return; expected = i / block + 3 * (rank * block + i % block); break;
        case ALLGATHER: if (i >= block * size) return; expected = i / block + 3 * i; break;
        case GATHER: if (i >= block * size) return; if (rank == root) expected = i / block == rank ? rank + 3 * i : i / block + 3 * (i % block); break;
        case SCATTER: if (rank != root && i < block) expected = root + 3 * (rank * block + i); break;
        default: return;
        }
        if (values[i] != expected) {
            CHECK(0, "%s in place: element %d is %d and not %d", kind_names[kind], i, values[i], expected);
            return;
        }
    }
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    if (argc < 5) {
        if (trial_rank == 0) fprintf(stderr, "usage: late_member OPERATION LATE ROOT COUNT [in_place]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const char *name = argv[1];
    int late = trial_rank == atoi(argv[2]), root = atoi(argv[3]), count = atoi(argv[4]), place = argc > 5;
    int kind = kind_of(name);
    MPI_Comm own, made = MPI_COMM_NULL;
    MUST(MPI_Comm_dup(MPI_COMM_WORLD, &own));
    struct collective *c = NULL;
    int *values = NULL;
    if (kind >= 0 && !place) {
        MPI_Comm on = kind >= NEIGHBOR_ALLGATHER ? collective_graph(own) : own;
        c = collective_make(kind, on, count, root);
        collective_fill(c, 5);
        collective_call(c, BLOCKING);
        collective_check(c);
        collective_fill(c, 6);
    } else if (kind >= 0) {
        values = malloc((size_t)count * sizeof(int));
        for (int i = 0; i < count; i++) values[i] = trial_rank + 3 * i;
    }
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    trial_ready();
    if (late) trial_wait();
    if (strcmp(name, "finalize") == 0) return trial_end();
    if (kind >= 0 && !place) {
        collective_call(c, BLOCKING);
        collective_check(c);
    } else if (kind >= 0) {
        in_place(kind, values, count, root, own);
        in_place_check(kind, values, count, root);
    } else if (strcmp(name, "split") == 0) {
        MUST(MPI_Comm_split(own, trial_rank % 2, -trial_rank, &made));
    } else if (strcmp(name, "dup") == 0) {
        MUST(MPI_Comm_dup(own, &made));
    } else if (strcmp(name, "create") == 0) {
        MPI_Group group;
        MUST(MPI_Comm_group(own, &group));
        MUST(MPI_Comm_create(own, group, &made));
        MUST(MPI_Group_free(&group));
    } else if (strcmp(name, "free") == 0) {
        MUST(MPI_Comm_free(&own));
        own = MPI_COMM_NULL;
    } else CHECK(0, "no operation is called %s", name);
    if (made != MPI_COMM_NULL) {
        int one = 1, sum = 0, size = 0;
        MUST(MPI_Comm_size(made, &size));
        MUST(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, made));
        CHECK(sum == size, "%d of %d", sum, size);
        MUST(MPI_Comm_free(&made));
    }
    long sum = 0, one = 1;
    MUST(MPI_Allreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == trial_size, "%ld of %d", sum, trial_size);
    if (own != MPI_COMM_NULL) MUST(MPI_Comm_free(&own));
    if (c) collective_delete(c);
    free(values);
    return trial_finish();
}
