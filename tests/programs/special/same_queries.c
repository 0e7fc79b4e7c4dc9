/* Topologies, datatypes, statuses, packing and predefined attributes say what they say natively.
 * trial: ranks=3 */
#include "../same.h"

static void grid(void) {
    int dims[1] = {size}, periods[1] = {1}, place[1], topology, before, after, numbers[6];
    MPI_Comm ring;
    MPI_Request request;
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &ring);
    MPI_Topo_test(ring, &topology);
    say("grid", topology);
    MPI_Topo_test(MPI_COMM_WORLD, &topology);
    say("world", topology);
    MPI_Cart_shift(ring, 0, 1, &before, &after);
    say("before", before);
    say("after", after);
    MPI_Cart_get(ring, 1, dims, periods, place);
    say("place", place[0]);
    MPI_Cart_map(MPI_COMM_WORLD, 1, dims, periods, &after);
    say("mapped", after);
    int mine[4] = {100 * rank, 100 * rank + 1, 100 * rank + 2, 100 * rank + 3};
    MPI_Neighbor_allgather(mine, 2, MPI_INT, numbers, 2, MPI_INT, ring);
    say_numbers("neighbor_allgather", numbers, 4);
    MPI_Neighbor_alltoall(mine, 2, MPI_INT, numbers, 2, MPI_INT, ring);
    say_numbers("neighbor_alltoall", numbers, 4);
    MPI_Datatype pair, pairs[2];
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    pairs[0] = pairs[1] = pair;
    int ones[2] = {1, 1};
    MPI_Aint places[2] = {0, 8};
    MPI_Neighbor_alltoallw(mine, ones, places, pairs, numbers, ones, places, pairs, ring);
    say_numbers("neighbor_alltoallw", numbers, 4);
    MPI_Ineighbor_alltoallw(mine, ones, places, pairs, numbers, ones, places, pairs, ring, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    say_numbers("ineighbor_alltoallw", numbers, 4);
    MPI_Type_free(&pair);
    MPI_Comm_free(&ring);

    periods[0] = 0;
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &ring);
    MPI_Cart_shift(ring, 0, 1, &before, &after);
    say("before the first", before == MPI_PROC_NULL);
    say("after the last", after == MPI_PROC_NULL);
    MPI_Comm_free(&ring);
}

static void graph(void) {
    int next[1] = {(rank + 1) % size}, weight[1] = {7}, in, out, weighted, source[1], target[1];
    int from_weight[1], to_weight[1];
    MPI_Comm graph;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, next, MPI_UNWEIGHTED, 1, next, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &graph);
    MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted);
    say_numbers("degrees", (int[]){in, out, weighted}, 3);
    MPI_Comm_free(&graph);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, next, weight, 1, next, weight, MPI_INFO_NULL, 0,
                                   &graph);
    MPI_Dist_graph_neighbors(graph, 1, source, from_weight, 1, target, to_weight);
    say_numbers("neighbours", (int[]){source[0], from_weight[0], target[0], to_weight[0]}, 4);
    MPI_Comm_free(&graph);
}

static void datatypes(void) {
    MPI_Datatype pair, match;
    MPI_Aint low, extent;
    MPI_Count low_x, extent_x;
    int bytes;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Type_size(pair, &bytes);
    MPI_Type_get_extent(pair, &low, &extent);
    MPI_Type_get_true_extent_x(pair, &low_x, &extent_x);
    say_numbers("pair", (int[]){bytes, low, extent, low_x, extent_x}, 5);
    MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &match);
    MPI_Type_size(match, &bytes);
    say("matching real", bytes);

    char packed[64];
    int position = 0, numbers[2] = {rank, 41}, back[2];
    MPI_Pack(numbers, 1, pair, packed, sizeof packed, &position, MPI_COMM_WORLD);
    say("packed", position);
    position = 0;
    MPI_Unpack(packed, sizeof packed, &position, back, 2, MPI_INT, MPI_COMM_WORLD);
    say_numbers("unpacked", back, 2);
    MPI_Aint external = 0;
    MPI_Pack_external("external32", numbers, 2, MPI_INT, packed, sizeof packed, &external);
    say("external32", external);
    say("first byte", packed[3]);

    MPI_Status status;
    int count, cancelled;
    memset(&status, 0, sizeof status);
    MPI_Status_set_elements(&status, MPI_INT, 3);
    MPI_Status_set_cancelled(&status, 1);
    MPI_Get_count(&status, MPI_INT, &count);
    say("elements", count);
    MPI_Get_count(&status, pair, &count);
    say("half a pair", count == MPI_UNDEFINED);
    MPI_Get_elements(&status, pair, &count);
    say("elements of pairs", count);
    MPI_Test_cancelled(&status, &cancelled);
    say("cancelled", cancelled);
    MPI_Type_free(&pair);
}

static void attributes(void) {
    int keys[] = {MPI_TAG_UB, MPI_HOST, MPI_IO, MPI_WTIME_IS_GLOBAL, MPI_LASTUSEDCODE};
    for (int i = 0; i < (int)(sizeof keys / sizeof *keys); i++) {
        int *value, there;
        MPI_Comm_get_attr(MPI_COMM_WORLD, keys[i], &value, &there);
        say_numbers("attribute", (int[]){keys[i], there, there ? *value : 0}, 3);
    }
    int commutes, version, subversion;
    MPI_Op_commutative(MPI_SUM, &commutes);
    say("sum commutes", commutes);
    MPI_Get_version(&version, &subversion);
    say_numbers("version", (int[]){version, subversion}, 2);
}

int main(int argc, char **argv) {
    begin(argc, argv);
    grid();
    graph();
    datatypes();
    attributes();
    MPI_Finalize();
    return 0;
}
