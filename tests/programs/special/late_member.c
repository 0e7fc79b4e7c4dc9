/* One member of a collective operation (or several) computes (until `go`) while all others are in it. Arguments: the operation's name (as in collectives.h, or
 * split, dup, create, free, finalize, several, behind), the late ranks, the root, the number of elements, and "in_place" or "in_pairs" for MPI_IN_PLACE
 * or "threads" for MPI_THREAD_MULTIPLE, with one thread.
 * trial: ranks=3 */
#include "../collectives.h"

static int kind_of(const char *name) {
    for (int kind = 0; kind < ALL_KINDS; kind++)
        if (strcmp(name, kind_names[kind]) == 0) return kind;
    return -1;
}

/* As in_place, with a datatype made of two integers. */
static void in_place_in_pairs(enum kind kind, int *values, int count, MPI_Comm comm) {
    int pairs = count / trial_size / 2;
    MPI_Datatype pair;
    MUST(MPI_Type_contiguous(2, MPI_INT, &pair));
    MUST(MPI_Type_commit(&pair));
    if (kind == ALLTOALL) MUST(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, values, pairs, pair, comm));
    else MUST(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, values, pairs, pair, comm));
    MUST(MPI_Type_free(&pair));
}

/* What is in place has its input where its result will be. */
static void in_place(enum kind kind, int *values, int count, int root, MPI_Comm comm) {
    int counts[MOST_RANKS], places[MOST_RANKS], bytes[MOST_RANKS], block = count / trial_size;
    MPI_Datatype types[MOST_RANKS];
    for (int rank = 0; rank < trial_size; rank++)
        counts[rank] = block, places[rank] = rank * block, bytes[rank] = 4 * places[rank], types[rank] = MPI_INT;
    switch (kind) {
    case ALLGATHERV: MUST(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, values, counts, places, MPI_INT, comm)); break;
    case ALLTOALLV:
        MUST(MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, values, counts, places, MPI_INT, comm));
        break;
    case ALLTOALLW: MUST(MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, values, counts, bytes, types, comm)); break;
    case REDUCE_SCATTER: MUST(MPI_Reduce_scatter(MPI_IN_PLACE, values, counts, MPI_INT, MPI_SUM, comm)); break;
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
        case REDUCE_SCATTER:
        case REDUCE_SCATTER_BLOCK: if (i >= block) return; expected = all + 3 * (rank * block + i) * size; break;
        case ALLTOALLV:
        case ALLTOALLW:
        case ALLTOALL: if (i >= block * size) return; expected = i / block + 3 * (rank * block + i % block); break;
        case ALLGATHERV:
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

/* Whether this rank is one of a list like "1,3". */
static int is_among(const char *ranks) {
    for (const char *at = ranks; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (trial_rank == atoi(at)) return 1;
    return 0;
}

/* A row of operations that a root returns from at once, of different sizes and datatypes, on the world and on a communicator of all. */
static void several(int root, int count, MPI_Comm own) {
    int size = trial_size, bytes = 4 * count * size;
    int *values = malloc((size_t)bytes), *mine = malloc((size_t)bytes);
    for (int round = 0; round < 24; round++) {
        MPI_Comm on = round % 2 ? own : MPI_COMM_WORLD;
        int elements = round % 5 == 4 ? 0 : 1 + (round * 7) % count;
        MPI_Datatype type = round % 3 == 2 ? MPI_DOUBLE : MPI_INT;
        int words = type == MPI_DOUBLE ? 2 : 1;
        for (int i = 0; i < bytes / 4; i++) values[i] = mine[i] = trial_rank == root ? 1000 * round + i : -1;
        if (round % 4 == 3) {
            MUST(MPI_Scatter(values, elements, MPI_INT, mine, elements, MPI_INT, root, on));
            for (int i = 0; i < elements; i++) {
                int expected = 1000 * round + trial_rank * elements + i;
                CHECK(mine[i] == expected, "round %d: element %d is %d and not %d", round, i, mine[i], expected);
            }
        } else {
            MUST(MPI_Bcast(mine, elements / words, type, root, on));
            for (int i = 0; i < elements / words * words; i++)
                CHECK(mine[i] == 1000 * round + i, "round %d: element %d is %d", round, i, mine[i]);
        }
    }
    free(values);
    free(mine);
}

/* The late rank sends to the last one, which waits for that before it comes to the broadcast too. */
static void behind(int late, int root, int count, MPI_Comm own) {
    int *values = malloc((size_t)count * sizeof(int)), message = 7, last = trial_size - 1;
    for (int i = 0; i < count; i++) values[i] = trial_rank == root ? 3 * i : -1;
    if (late) MUST(MPI_Send(&message, 1, MPI_INT, last, 5, own));
    else if (trial_rank == last) MUST(MPI_Recv(&message, 1, MPI_INT, MPI_ANY_SOURCE, 5, own, MPI_STATUS_IGNORE));
    MUST(MPI_Bcast(values, count, MPI_INT, root, own));
    for (int i = 0; i < count; i++) CHECK(values[i] == 3 * i, "element %d is %d", i, values[i]);
    free(values);
}

int main(int argc, char **argv) {
    int threads = argc > 5 && strcmp(argv[5], "threads") == 0;
    trial_start_threads(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    if (argc < 5) {
        if (trial_rank == 0) fprintf(stderr, "usage: late_member OPERATION LATE ROOT COUNT [in_place]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const char *name = argv[1];
    int late = is_among(argv[2]), root = atoi(argv[3]), count = atoi(argv[4]), place = argc > 5 && !threads;
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
        if (strcmp(argv[5], "in_pairs") == 0) in_place_in_pairs(kind, values, count, own);
        else in_place(kind, values, count, root, own);
        in_place_check(kind, values, count, root);
    } else if (strcmp(name, "several") == 0) {
        several(root, count, own);
    } else if (strcmp(name, "behind") == 0) {
        behind(late, root, count, own);
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
