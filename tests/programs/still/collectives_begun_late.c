/* Every nonblocking collective is begun by some ranks when the checkpoint is asked for; the others come a little later
 * by themselves, and what was begun first has been tested meanwhile.
 * trial: ranks=2,4 */
#include "../collectives.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    MPI_Comm graph = collective_graph(MPI_COMM_WORLD);
    struct collective *all[ALL_KINDS];
    int late = trial_rank == trial_size - 1, done[ALL_KINDS] = {0};
    for (int kind = 0; kind < ALL_KINDS; kind++) {
        all[kind] = collective_make(kind, kind < GLOBAL_KINDS ? MPI_COMM_WORLD : graph, 30, kind);
        collective_fill(all[kind], kind);
    }
    for (int stage = 0; stage < 2; stage++) {
        if (stage == late)
            for (int kind = 0; kind < ALL_KINDS; kind++) collective_call(all[kind], NONBLOCKING);
        if (stage == 0 && !late)
            /* Some are complete here already, though not everywhere. */
            for (int i = 0; i < 20; i++)
                for (int kind = 0; kind < ALL_KINDS; kind++)
                    if (!done[kind]) MUST(MPI_Test(&all[kind]->request, &done[kind], MPI_STATUS_IGNORE));
        if (stage == 0) trial_ready_late(late);
    }
    trial_wait();
    for (int kind = 0; kind < ALL_KINDS; kind++) {
        MUST(MPI_Wait(&all[kind]->request, MPI_STATUS_IGNORE));
        collective_check(all[kind]);
        collective_delete(all[kind]);
    }
    MUST(MPI_Comm_free(&graph));
    return trial_finish();
}
