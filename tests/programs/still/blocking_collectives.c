/* Every blocking collective works on communicators made before, in rounds before and after the checkpoint.
 * trial: ranks=2,3,4 safe_states=clock,barrier */
#include "../collectives.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    MPI_Comm reversed, graph;
    MUST(MPI_Comm_split(MPI_COMM_WORLD, 0, -trial_rank, &reversed));
    graph = collective_graph(reversed);
    for (int round = 0; round < 4; round++) {
        if (round == 1) trial_hold();
        for (int kind = 0; kind < ALL_KINDS; kind++)
            for (int i = 0; i < 3; i++) {
                MPI_Comm comm = kind >= GLOBAL_KINDS ? graph : i ? reversed : MPI_COMM_WORLD;
                struct collective *c = collective_make(kind, comm, i == 2 ? 10000 : 3 + i, round + i);
                collective_fill(c, 100 * round + kind + i);
                collective_call(c, BLOCKING);
                collective_check(c);
                collective_delete(c);
            }
    }
    MUST(MPI_Comm_free(&graph));
    MUST(MPI_Comm_free(&reversed));
    return trial_finish();
}
