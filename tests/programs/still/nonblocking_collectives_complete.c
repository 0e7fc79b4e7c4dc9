/* Every nonblocking collective, begun by all ranks, not waited for before the checkpoint.
 * trial: ranks=2,4 */
#include "../collectives.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    MPI_Comm graph = collective_graph(MPI_COMM_WORLD);
    struct collective *all[ALL_KINDS];
    for (int kind = 0; kind < ALL_KINDS; kind++) {
        all[kind] = collective_make(kind, kind < GLOBAL_KINDS ? MPI_COMM_WORLD : graph, 40, kind);
        collective_fill(all[kind], kind);
        collective_call(all[kind], NONBLOCKING);
    }
    trial_hold();
    /* Half of them are polled, half waited for, and new ones of the same kind come behind them. */
    for (int kind = 0; kind < ALL_KINDS; kind++) {
        int flag = kind % 2;
        if (flag) MUST(MPI_Wait(&all[kind]->request, MPI_STATUS_IGNORE));
        while (!flag) MUST(MPI_Test(&all[kind]->request, &flag, MPI_STATUS_IGNORE));
        collective_check(all[kind]);
        collective_fill(all[kind], 100 + kind);
        collective_call(all[kind], NONBLOCKING);
    }
    for (int kind = 0; kind < ALL_KINDS; kind++) {
        MUST(MPI_Wait(&all[kind]->request, MPI_STATUS_IGNORE));
        collective_check(all[kind]);
        collective_delete(all[kind]);
    }
    MUST(MPI_Comm_free(&graph));
    return trial_finish();
}
