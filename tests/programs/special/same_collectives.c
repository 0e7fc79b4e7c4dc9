/* Every collective operation, blocking, nonblocking and persistent, gives what it gives natively.
 * trial: ranks=3 */
#include "../same.h"
#include <mpi-ext.h>

enum { ROOM = 64, MOST = 8 };
static int from[ROOM], to[ROOM];
static int pairs[MOST], pair_places[MOST], ones[MOST], one_places[MOST];
static MPI_Datatype pair, types[MOST];

static void fresh(void) {
    for (int i = 0; i < ROOM; i++) {
        from[i] = 100 * rank + i;
        to[i] = -1;
    }
}

#define GIVES(name, array, count, call) \
    do {                                \
        fresh();                        \
        call;                           \
        say_numbers(name, array, count);\
    } while (0)

static MPI_Request request;
static void finish(void) {
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (request != MPI_REQUEST_NULL) say("request is left", 1);
}

static void twice(void) {
    for (int i = 0; i < 2; i++) {
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        from[0]++;
    }
    MPI_Request_free(&request);
}

static void blocking(MPI_Comm c) {
    GIVES("barrier", to, 1, MPI_Barrier(c));
    GIVES("bcast", from, 4, MPI_Bcast(from, 4, MPI_INT, size - 1, c));
    GIVES("gather", to, 8, MPI_Gather(from, 2, MPI_INT, to, 1, pair, 0, c));
    GIVES("gatherv", to, 12, MPI_Gatherv(from, 2, MPI_INT, to, pairs, pair_places, MPI_INT, 0, c));
    GIVES("scatter", to, 4, MPI_Scatter(from, 2, MPI_INT, to, 2, MPI_INT, 0, c));
    GIVES("scatter in place", to, 4,
          MPI_Scatter(from, 2, MPI_INT, rank ? (void *)to : MPI_IN_PLACE, 2, MPI_INT, 0, c));
    GIVES("scatterv", to, 4, MPI_Scatterv(from, pairs, pair_places, MPI_INT, to, 2, MPI_INT, 0, c));
    GIVES("allgather", to, 8, MPI_Allgather(from, 2, MPI_INT, to, 2, MPI_INT, c));
    GIVES("allgatherv", to, 12, MPI_Allgatherv(from, 2, MPI_INT, to, pairs, pair_places, MPI_INT, c));
    GIVES("alltoall", to, 8, MPI_Alltoall(from, 2, MPI_INT, to, 2, MPI_INT, c));
    GIVES("alltoallv", to, 12,
          MPI_Alltoallv(from, pairs, pair_places, MPI_INT, to, pairs, pair_places, MPI_INT, c));
    GIVES("alltoallw", to, 12, MPI_Alltoallw(from, ones, one_places, types, to, ones, one_places, types, c));
    GIVES("alltoallw in place", from, 12,
          MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, from, ones, one_places, types, c));
    GIVES("reduce", to, 4, MPI_Reduce(from, to, 4, MPI_INT, MPI_MAX, 0, c));
    GIVES("allreduce", to, 4, MPI_Allreduce(from, to, 4, MPI_INT, MPI_SUM, c));
    GIVES("allreduce in place", from, 4, MPI_Allreduce(MPI_IN_PLACE, from, 4, MPI_INT, MPI_SUM, c));
    GIVES("reduce_scatter", to, 4, MPI_Reduce_scatter(from, to, pairs, MPI_INT, MPI_SUM, c));
    GIVES("reduce_scatter_block", to, 4, MPI_Reduce_scatter_block(from, to, 2, MPI_INT, MPI_SUM, c));
    GIVES("scan", to, 4, MPI_Scan(from, to, 4, MPI_INT, MPI_SUM, c));
    GIVES("exscan", to, rank ? 4 : 0, MPI_Exscan(from, to, 4, MPI_INT, MPI_SUM, c));
    GIVES("reduce_local", to, 4, MPI_Reduce_local(from, to, 4, MPI_INT, MPI_SUM));
}

static void nonblocking(MPI_Comm c) {
    MPI_Request *q = &request;
    GIVES("ibarrier", to, 1, MPI_Ibarrier(c, q); finish());
    GIVES("ibcast", from, 4, MPI_Ibcast(from, 4, MPI_INT, 0, c, q); finish());
    GIVES("igather", to, 8, MPI_Igather(from, 2, MPI_INT, to, 2, MPI_INT, 0, c, q); finish());
    GIVES("igatherv", to, 12,
          MPI_Igatherv(from, 2, MPI_INT, to, pairs, pair_places, MPI_INT, 0, c, q); finish());
    GIVES("iscatter", to, 4, MPI_Iscatter(from, 2, MPI_INT, to, 2, MPI_INT, 0, c, q); finish());
    GIVES("iscatterv", to, 4,
          MPI_Iscatterv(from, pairs, pair_places, MPI_INT, to, 2, MPI_INT, 0, c, q); finish());
    GIVES("iallgather", to, 8, MPI_Iallgather(from, 2, MPI_INT, to, 2, MPI_INT, c, q); finish());
    GIVES("iallgatherv", to, 12,
          MPI_Iallgatherv(from, 2, MPI_INT, to, pairs, pair_places, MPI_INT, c, q); finish());
    GIVES("ialltoall", to, 8, MPI_Ialltoall(from, 2, MPI_INT, to, 2, MPI_INT, c, q); finish());
    GIVES("ialltoallv", to, 12,
          MPI_Ialltoallv(from, pairs, pair_places, MPI_INT, to, pairs, pair_places, MPI_INT, c, q);
          finish());
    GIVES("ialltoallw", to, 12,
          MPI_Ialltoallw(from, ones, one_places, types, to, ones, one_places, types, c, q); finish());
    GIVES("ireduce", to, 4, MPI_Ireduce(from, to, 4, MPI_INT, MPI_MIN, 0, c, q); finish());
    GIVES("iallreduce", to, 4, MPI_Iallreduce(from, to, 4, MPI_INT, MPI_SUM, c, q); finish());
    GIVES("ireduce_scatter", to, 4, MPI_Ireduce_scatter(from, to, pairs, MPI_INT, MPI_SUM, c, q); finish());
    GIVES("ireduce_scatter_block", to, 4,
          MPI_Ireduce_scatter_block(from, to, 2, MPI_INT, MPI_SUM, c, q); finish());
    GIVES("iscan", to, 4, MPI_Iscan(from, to, 4, MPI_INT, MPI_SUM, c, q); finish());
    GIVES("iexscan", to, rank ? 4 : 0, MPI_Iexscan(from, to, 4, MPI_INT, MPI_SUM, c, q); finish());
}

static void persistent(MPI_Comm c) {
    MPI_Request *q = &request;
    MPI_Info i = MPI_INFO_NULL;
    GIVES("barrier_init", to, 1, MPIX_Barrier_init(c, i, q); twice());
    GIVES("bcast_init", from + 1, 4, MPIX_Bcast_init(from + 1, 4, MPI_INT, 0, c, i, q); twice());
    GIVES("allreduce_init", to, 4, MPIX_Allreduce_init(from, to, 4, MPI_INT, MPI_SUM, c, i, q); twice());
    GIVES("gatherv_init", to, 12,
          MPIX_Gatherv_init(from, 2, MPI_INT, to, pairs, pair_places, MPI_INT, 0, c, i, q); twice());
    GIVES("alltoallw_init", to, 12,
          MPIX_Alltoallw_init(from, ones, one_places, types, to, ones, one_places, types, c, i, q);
          twice());
    GIVES("exscan_init", to, rank ? 4 : 0,
          MPIX_Exscan_init(from, to, 4, MPI_INT, MPI_SUM, c, i, q); twice());
}

static void between_two_groups(void) {
    MPI_Comm half, both;
    MPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank ? 0 : 1, 7, &both);
    int root = rank == 0 ? MPI_ROOT : 0;
    GIVES("bcast from the other group", from, 2, MPI_Bcast(from, 2, MPI_INT, root, both));
    root = rank == 0 ? 0 : rank == 1 ? MPI_ROOT : MPI_PROC_NULL;
    GIVES("bcast from one of the other group", from, 2, MPI_Bcast(from, 2, MPI_INT, root, both));
    GIVES("allreduce of the other group", to, 2, MPI_Allreduce(from, to, 2, MPI_INT, MPI_SUM, both));
    GIVES("alltoallw with the other group", to, 6,
          MPI_Alltoallw(from, ones, one_places, types, to, ones, one_places, types, both));
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
}

int main(int argc, char **argv) {
    begin(argc, argv);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    for (int i = 0; i < MOST; i++) {
        pairs[i] = 2;
        pair_places[i] = 3 * i;
        ones[i] = 1;
        one_places[i] = 8 * i;
        types[i] = pair;
    }
    blocking(MPI_COMM_WORLD);
    nonblocking(MPI_COMM_WORLD);
    persistent(MPI_COMM_WORLD);
    between_two_groups();
    MPI_Type_free(&pair);
    MPI_Finalize();
    return 0;
}
