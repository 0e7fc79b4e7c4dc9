/* Graph and distributed-graph communicators answer the same questions and exchange with the same neighbours afterwards.
 * trial: ranks=3,4 */
#include "../common.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int n = trial_size, r = trial_rank, index[8], edges[32], count = 0;
    /* Everybody is a neighbour of the ranks that are larger, and rank 0 of itself. */
    for (int i = 0; i < n; i++) {
        if (i == 0) edges[count++] = 0;
        for (int j = i + 1; j < n; j++) edges[count++] = j;
        for (int j = 0; j < i; j++) edges[count++] = j;
        index[i] = count;
    }
    MPI_Comm graph, ring, general;
    MUST(MPI_Graph_create(MPI_COMM_WORLD, n, index, edges, 0, &graph));
    int next = (r + 1) % n, previous = (r + n - 1) % n, weight = 3 * r + 1, in_weight = 3 * previous + 1, one = 1;
    MUST(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &previous, &in_weight, 1, &next, &weight, MPI_INFO_NULL, 0,
                                        &ring));
    MUST(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &previous, &one, &r, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &general));
    trial_hold();
    int kind = -1, nodes = 0, degrees = 0, neighbours[8], got_index[8], got_edges[32];
    MUST(MPI_Topo_test(graph, &kind));
    CHECK(kind == MPI_GRAPH, "topology %d", kind);
    MUST(MPI_Graphdims_get(graph, &nodes, &degrees));
    CHECK(nodes == n && degrees == count, "%d nodes, %d edges", nodes, degrees);
    MUST(MPI_Graph_get(graph, 8, 32, got_index, got_edges));
    CHECK(memcmp(index, got_index, n * sizeof(int)) == 0 && memcmp(edges, got_edges, count * sizeof(int)) == 0, "graph");
    MUST(MPI_Graph_neighbors_count(graph, r, &degrees));
    CHECK(degrees == n - (r != 0), "%d neighbours", degrees);
    MUST(MPI_Graph_neighbors(graph, r, 8, neighbours));
    for (int i = 0; i < degrees; i++)
        CHECK(neighbours[i] == edges[(r ? index[r - 1] : 0) + i], "neighbour %d is %d", i, neighbours[i]);

    int in = -1, out = -1, weighted = -1, source = -1, target = -1, w_in = -1, w_out = -1;
    MUST(MPI_Topo_test(ring, &kind));
    CHECK(kind == MPI_DIST_GRAPH, "topology %d", kind);
    MUST(MPI_Dist_graph_neighbors_count(ring, &in, &out, &weighted));
    CHECK(in == 1 && out == 1 && weighted, "degrees %d and %d, weighted %d", in, out, weighted);
    MUST(MPI_Dist_graph_neighbors(ring, 1, &source, &w_in, 1, &target, &w_out));
    CHECK(source == previous && target == next && w_in == in_weight && w_out == weight, "from %d, to %d", source, target);
    int value = -1;
    MUST(MPI_Neighbor_allgather(&r, 1, MPI_INT, &value, 1, MPI_INT, ring));
    CHECK(value == previous, "got %d round the ring", value);
    MUST(MPI_Dist_graph_neighbors_count(general, &in, &out, &weighted));
    CHECK(in == 1 && out == 1 && !weighted, "general: degrees %d and %d, weighted %d", in, out, weighted);
    int sent = 5 * r;
    MUST(MPI_Neighbor_alltoall(&sent, 1, MPI_INT, &value, 1, MPI_INT, general));
    CHECK(value == 5 * previous, "got %d in the general one", value);
    MUST(MPI_Comm_free(&general));
    MUST(MPI_Comm_free(&ring));
    MUST(MPI_Comm_free(&graph));
    return trial_finish();
}
