/* Persistent collectives of every kind: some not started, some active on a part of the ranks, all started again.
 * trial: ranks=2,4 */
#include "../collectives.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    MPI_Comm comm, graph;
    MUST(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    graph = collective_graph(comm);
    struct collective *all[ALL_KINDS];
    for (int kind = 0; kind < ALL_KINDS; kind++) {
        all[kind] = collective_make(kind, kind < GLOBAL_KINDS ? comm : graph, 20, kind);
        collective_fill(all[kind], kind);
        collective_call(all[kind], PERSISTENT);
    }
    int late = trial_rank == trial_size - 1;
    for (int round = 0; round < 3; round++) {
        for (int stage = 0; stage < 2; stage++) {
            if (stage == late)
                for (int kind = 0; kind < ALL_KINDS; kind++) {
                    /* The odd kinds are not started before the checkpoint at all. */
                    if (round == 0 && kind % 2) continue;
                    collective_fill(all[kind], 100 * round + kind);
                    MUST(MPI_Start(&all[kind]->request));
                }
            if (round == 0 && stage == 0) trial_ready_late(late);
        }
        if (round == 0) trial_wait();
        for (int kind = 0; kind < ALL_KINDS; kind++) {
            if (round == 0 && kind % 2) continue;
            MUST(MPI_Wait(&all[kind]->request, MPI_STATUS_IGNORE));
            CHECK(all[kind]->request != MPI_REQUEST_NULL, "a persistent request was freed");
            collective_check(all[kind]);
        }
    }
    for (int kind = 0; kind < ALL_KINDS; kind++) {
        MUST(MPI_Request_free(&all[kind]->request));
        collective_delete(all[kind]);
    }
    MUST(MPI_Comm_free(&graph));
    MUST(MPI_Comm_free(&comm));
    return trial_finish();
}
