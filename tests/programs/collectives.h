/* Every collective operation in its three forms - blocking, nonblocking, persistent - with values that tell where they
 * come from, so that each result can be checked by itself.
 */
#ifndef TRIAL_COLLECTIVES_H
#define TRIAL_COLLECTIVES_H

#include "common.h"
#include "persistent.h"

enum form { BLOCKING, NONBLOCKING, PERSISTENT };

enum kind {
    BARRIER, BCAST, GATHER, GATHERV, SCATTER, SCATTERV, ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, ALLTOALLW,
    REDUCE, ALLREDUCE, REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, SCAN, EXSCAN, GLOBAL_KINDS,
    NEIGHBOR_ALLGATHER = GLOBAL_KINDS, NEIGHBOR_ALLGATHERV, NEIGHBOR_ALLTOALL, NEIGHBOR_ALLTOALLV, NEIGHBOR_ALLTOALLW,
    ALL_KINDS
};

static const char *const kind_names[] = {
    "barrier", "bcast", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv", "alltoall", "alltoallv",
    "alltoallw", "reduce", "allreduce", "reduce_scatter", "reduce_scatter_block", "scan", "exscan",
    "neighbor_allgather", "neighbor_allgatherv", "neighbor_alltoall", "neighbor_alltoallv", "neighbor_alltoallw",
};

#define MOST_RANKS 8

/* One operation: what it works on must stay where it is while it is pending. */
struct collective {
    enum kind kind;
    MPI_Comm comm;
    MPI_Request request;
    int rank, size, block, root, seed;
    int *out, *in;
    int sources[MOST_RANKS], targets[MOST_RANKS], indegree, outdegree;
    int send_counts[MOST_RANKS], receive_counts[MOST_RANKS], send_places[MOST_RANKS], receive_places[MOST_RANKS];
    MPI_Aint send_bytes[MOST_RANKS], receive_bytes[MOST_RANKS];
    MPI_Datatype types[MOST_RANKS];
};

static int collective_value(int seed, int from, int index) {
    return (int)(trial_mix((uint64_t)seed * 1000003u + (uint64_t)from * 65537u + (uint64_t)index) & 0xffffff);
}

static int collective_edge(int size, int from, int to) { return (from + to) % 2 == 0 || to == (from + 1) % size; }

/* Elements that `from` has for `to` in the v and w forms. */
static int collective_count(const struct collective *c, int from, int to) { return (from + 2 * to) % c->block + 1; }

/* The communicator on which the neighbourhood operations run. */
static inline MPI_Comm collective_graph(MPI_Comm comm) {
    int rank, size, sources[MOST_RANKS], targets[MOST_RANKS], in = 0, out = 0;
    MPI_Comm graph;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < size; i++) {
        if (collective_edge(size, i, rank)) sources[in++] = i;
        if (collective_edge(size, rank, i)) targets[out++] = i;
    }
    MUST(MPI_Dist_graph_create_adjacent(comm, in, sources, MPI_UNWEIGHTED, out, targets, MPI_UNWEIGHTED, MPI_INFO_NULL,
                                        0, &graph));
    return graph;
}

/* Puts the values to be sent into place; may be called again for another round with another seed. */
static void collective_fill(struct collective *c, int seed) {
    int room = c->size * (c->block + c->size);
    c->seed = seed;
    for (int i = 0; i < room; i++) {
        c->out[i] = collective_value(seed, c->rank, i);
        c->in[i] = c->kind == BCAST && c->rank == c->root ? c->out[i] : -1;
    }
}

static struct collective *collective_make(enum kind kind, MPI_Comm comm, int block, int root) {
    struct collective *c = calloc(1, sizeof *c);
    c->kind = kind, c->comm = comm, c->block = block, c->request = MPI_REQUEST_NULL;
    MPI_Comm_rank(comm, &c->rank);
    MPI_Comm_size(comm, &c->size);
    c->root = root % c->size;
    int room = c->size * (block + c->size), stride = block + c->size;
    c->out = malloc(room * sizeof(int));
    c->in = malloc(room * sizeof(int));
    for (int i = 0; i < c->size; i++) {
        c->types[i] = MPI_INT;
        if (kind < GLOBAL_KINDS) {
            c->sources[c->indegree++] = i;
            c->targets[c->outdegree++] = i;
        } else {
            if (collective_edge(c->size, i, c->rank)) c->sources[c->indegree++] = i;
            if (collective_edge(c->size, c->rank, i)) c->targets[c->outdegree++] = i;
        }
    }
    for (int i = 0; i < c->size; i++) {
        c->send_places[i] = c->receive_places[i] = i * stride;
        c->send_bytes[i] = c->receive_bytes[i] = (MPI_Aint)(i * stride * sizeof(int));
        if (kind == GATHERV || kind == ALLGATHERV || kind == SCATTERV || kind == REDUCE_SCATTER)
            c->receive_counts[i] = c->send_counts[i] = block + i;
        if (kind == NEIGHBOR_ALLGATHERV && i < c->indegree) c->receive_counts[i] = block + c->sources[i];
        if (kind == ALLTOALLV || kind == ALLTOALLW || kind == NEIGHBOR_ALLTOALLV || kind == NEIGHBOR_ALLTOALLW) {
            if (i < c->indegree) c->receive_counts[i] = collective_count(c, c->sources[i], c->rank);
            if (i < c->outdegree) c->send_counts[i] = collective_count(c, c->rank, c->targets[i]);
        }
        if (kind == ALLTOALLW) {
            /* Here displacements are ints, and in bytes. */
            c->send_places[i] *= (int)sizeof(int);
            c->receive_places[i] *= (int)sizeof(int);
        }
    }
    return c;
}

static void collective_delete(struct collective *c) {
    free(c->out);
    free(c->in);
    free(c);
}

#define COLLECTIVE_FORMS(blocking, nonblocking, persistent, ...) \
    switch (form) { \
    case BLOCKING: MUST(blocking(__VA_ARGS__)); break; \
    case NONBLOCKING: MUST(nonblocking(__VA_ARGS__, &c->request)); break; \
    case PERSISTENT: MUST(persistent(__VA_ARGS__, MPI_INFO_NULL, &c->request)); break; \
    } \
    break

/* Carries the operation out, begins it, or makes its persistent request (which MPI_Start begins). */
static void collective_call(struct collective *c, enum form form) {
    int block = c->block, root = c->root, mine = block + c->rank;
    MPI_Comm comm = c->comm;
    switch (c->kind) {
    case BARRIER: COLLECTIVE_FORMS(MPI_Barrier, MPI_Ibarrier, MPIX_Barrier_init, comm);
    case BCAST: COLLECTIVE_FORMS(MPI_Bcast, MPI_Ibcast, MPIX_Bcast_init, c->in, block, MPI_INT, root, comm);
    case GATHER:
        COLLECTIVE_FORMS(MPI_Gather, MPI_Igather, MPIX_Gather_init, c->out, block, MPI_INT, c->in, block, MPI_INT, root,
                         comm);
    case GATHERV:
        COLLECTIVE_FORMS(MPI_Gatherv, MPI_Igatherv, MPIX_Gatherv_init, c->out, mine, MPI_INT, c->in, c->receive_counts,
                         c->receive_places, MPI_INT, root, comm);
    case SCATTER:
        COLLECTIVE_FORMS(MPI_Scatter, MPI_Iscatter, MPIX_Scatter_init, c->out, block, MPI_INT, c->in, block, MPI_INT,
                         root, comm);
    case SCATTERV:
        COLLECTIVE_FORMS(MPI_Scatterv, MPI_Iscatterv, MPIX_Scatterv_init, c->out, c->send_counts, c->send_places,
                         MPI_INT, c->in, mine, MPI_INT, root, comm);
    case ALLGATHER:
        COLLECTIVE_FORMS(MPI_Allgather, MPI_Iallgather, MPIX_Allgather_init, c->out, block, MPI_INT, c->in, block,
                         MPI_INT, comm);
    case ALLGATHERV:
        COLLECTIVE_FORMS(MPI_Allgatherv, MPI_Iallgatherv, MPIX_Allgatherv_init, c->out, mine, MPI_INT, c->in,
                         c->receive_counts, c->receive_places, MPI_INT, comm);
    case ALLTOALL:
        COLLECTIVE_FORMS(MPI_Alltoall, MPI_Ialltoall, MPIX_Alltoall_init, c->out, block, MPI_INT, c->in, block, MPI_INT,
                         comm);
    case ALLTOALLV:
        COLLECTIVE_FORMS(MPI_Alltoallv, MPI_Ialltoallv, MPIX_Alltoallv_init, c->out, c->send_counts, c->send_places,
                         MPI_INT, c->in, c->receive_counts, c->receive_places, MPI_INT, comm);
    case ALLTOALLW:
        COLLECTIVE_FORMS(MPI_Alltoallw, MPI_Ialltoallw, MPIX_Alltoallw_init, c->out, c->send_counts, c->send_places,
                         c->types, c->in, c->receive_counts, c->receive_places, c->types, comm);
    case REDUCE:
        COLLECTIVE_FORMS(MPI_Reduce, MPI_Ireduce, MPIX_Reduce_init, c->out, c->in, block, MPI_INT, MPI_SUM, root, comm);
    case ALLREDUCE:
        COLLECTIVE_FORMS(MPI_Allreduce, MPI_Iallreduce, MPIX_Allreduce_init, c->out, c->in, block, MPI_INT, MPI_SUM,
                         comm);
    case REDUCE_SCATTER:
        COLLECTIVE_FORMS(MPI_Reduce_scatter, MPI_Ireduce_scatter, MPIX_Reduce_scatter_init, c->out, c->in,
                         c->receive_counts, MPI_INT, MPI_SUM, comm);
    case REDUCE_SCATTER_BLOCK:
        COLLECTIVE_FORMS(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, MPIX_Reduce_scatter_block_init, c->out,
                         c->in, block, MPI_INT, MPI_SUM, comm);
    case SCAN: COLLECTIVE_FORMS(MPI_Scan, MPI_Iscan, MPIX_Scan_init, c->out, c->in, block, MPI_INT, MPI_SUM, comm);
    case EXSCAN:
        COLLECTIVE_FORMS(MPI_Exscan, MPI_Iexscan, MPIX_Exscan_init, c->out, c->in, block, MPI_INT, MPI_SUM, comm);
    case NEIGHBOR_ALLGATHER:
        COLLECTIVE_FORMS(MPI_Neighbor_allgather, MPI_Ineighbor_allgather, MPIX_Neighbor_allgather_init, c->out, block,
                         MPI_INT, c->in, block, MPI_INT, comm);
    case NEIGHBOR_ALLGATHERV:
        COLLECTIVE_FORMS(MPI_Neighbor_allgatherv, MPI_Ineighbor_allgatherv, MPIX_Neighbor_allgatherv_init, c->out, mine,
                         MPI_INT, c->in, c->receive_counts, c->receive_places, MPI_INT, comm);
    case NEIGHBOR_ALLTOALL:
        COLLECTIVE_FORMS(MPI_Neighbor_alltoall, MPI_Ineighbor_alltoall, MPIX_Neighbor_alltoall_init, c->out, block,
                         MPI_INT, c->in, block, MPI_INT, comm);
    case NEIGHBOR_ALLTOALLV:
        COLLECTIVE_FORMS(MPI_Neighbor_alltoallv, MPI_Ineighbor_alltoallv, MPIX_Neighbor_alltoallv_init, c->out,
                         c->send_counts, c->send_places, MPI_INT, c->in, c->receive_counts, c->receive_places, MPI_INT,
                         comm);
    case NEIGHBOR_ALLTOALLW:
        COLLECTIVE_FORMS(MPI_Neighbor_alltoallw, MPI_Ineighbor_alltoallw, MPIX_Neighbor_alltoallw_init, c->out,
                         c->send_counts, c->send_bytes, c->types, c->in, c->receive_counts, c->receive_bytes, c->types,
                         comm);
    default: break;
    }
}

/* What must be at in[place + index]: block `index` of source number `from`, taken from its `at`. */
static void collective_expect(const struct collective *c, int place, int from, int at, int count) {
    for (int k = 0; k < count; k++)
        if (c->in[place + k] != collective_value(c->seed, from, at + k)) {
            CHECK(0, "%s, seed %d: element %d from rank %d is %d and not %d", kind_names[c->kind], c->seed, place + k,
                  from, c->in[place + k], collective_value(c->seed, from, at + k));
            return;
        }
}

static void collective_expect_sum(const struct collective *c, int first, int end, int at, int count) {
    for (int k = 0; k < count; k++) {
        int sum = 0;
        for (int from = first; from < end; from++) sum += collective_value(c->seed, from, at + k);
        if (c->in[k] != sum) {
            CHECK(0, "%s, seed %d: element %d is %d and not %d", kind_names[c->kind], c->seed, k, c->in[k], sum);
            return;
        }
    }
}

static void collective_check(const struct collective *c) {
    int block = c->block, rank = c->rank, size = c->size, stride = block + size, place = 0;
    int everywhere = c->kind == ALLGATHER || c->kind == ALLGATHERV;
    switch (c->kind) {
    case BCAST: collective_expect(c, 0, c->root, 0, block); break;
    case GATHER:
    case ALLGATHER:
        if (rank == c->root || everywhere)
            for (int i = 0; i < size; i++) collective_expect(c, i * block, i, 0, block);
        break;
    case GATHERV:
    case ALLGATHERV:
        if (rank == c->root || everywhere)
            for (int i = 0; i < size; i++) collective_expect(c, i * stride, i, 0, block + i);
        break;
    case SCATTER: collective_expect(c, 0, c->root, rank * block, block); break;
    case SCATTERV: collective_expect(c, 0, c->root, rank * stride, block + rank); break;
    case ALLTOALL:
        for (int i = 0; i < size; i++) collective_expect(c, i * block, i, rank * block, block);
        break;
    case ALLTOALLV:
    case ALLTOALLW:
        for (int i = 0; i < size; i++)
            collective_expect(c, i * stride, i, rank * stride, collective_count(c, i, rank));
        break;
    case REDUCE:
        if (rank == c->root) collective_expect_sum(c, 0, size, 0, block);
        break;
    case ALLREDUCE: collective_expect_sum(c, 0, size, 0, block); break;
    case REDUCE_SCATTER:
        for (int i = 0; i < rank; i++) place += block + i;
        collective_expect_sum(c, 0, size, place, block + rank);
        break;
    case REDUCE_SCATTER_BLOCK: collective_expect_sum(c, 0, size, rank * block, block); break;
    case SCAN: collective_expect_sum(c, 0, rank + 1, 0, block); break;
    case EXSCAN:
        if (rank > 0) collective_expect_sum(c, 0, rank, 0, block);
        break;
    case NEIGHBOR_ALLGATHER:
        for (int j = 0; j < c->indegree; j++) collective_expect(c, j * block, c->sources[j], 0, block);
        break;
    case NEIGHBOR_ALLGATHERV:
        for (int j = 0; j < c->indegree; j++)
            collective_expect(c, j * stride, c->sources[j], 0, block + c->sources[j]);
        break;
    case NEIGHBOR_ALLTOALL:
    case NEIGHBOR_ALLTOALLV:
    case NEIGHBOR_ALLTOALLW:
        for (int j = 0; j < c->indegree; j++) {
            int from = c->sources[j], position = 0;
            for (int to = 0; to < rank; to++) position += collective_edge(size, from, to);
            if (c->kind == NEIGHBOR_ALLTOALL) collective_expect(c, j * block, from, position * block, block);
            else collective_expect(c, j * stride, from, position * stride, collective_count(c, from, rank));
        }
        break;
    default: break;
    }
}

#endif
