/* Every nonblocking collective, several of each at once on two communicators, begun by some ranks only.
 * trial: ranks=2,4 */
#include "../collectives.h"

#define EACH 2

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    MPI_Comm comms[2], graphs[2];
    struct collective *all[ALL_KINDS][EACH];
    MUST(MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]));
    /* The same ranks in the opposite order. */
    MUST(MPI_Comm_split(MPI_COMM_WORLD, 0, -trial_rank, &comms[1]));
    for (int i = 0; i < 2; i++) graphs[i] = collective_graph(comms[i]);
    for (int kind = 0; kind < ALL_KINDS; kind++)
        for (int i = 0; i < EACH; i++) {
            MPI_Comm comm = kind < GLOBAL_KINDS ? comms[i] : graphs[i];
            all[kind][i] = collective_make(kind, comm, i ? 3000 : 5, kind + i);
            collective_fill(all[kind][i], 10 * kind + i);
        }
    int late = trial_rank % 2;
    for (int stage = 0; stage < 2; stage++) {
        if (stage == late)
            for (int kind = 0; kind < ALL_KINDS; kind++)
                for (int i = 0; i < EACH; i++) collective_call(all[kind][i], NONBLOCKING);
        if (stage == 0) trial_hold();
    }
    for (int kind = ALL_KINDS - 1; kind >= 0; kind--)
        for (int i = 0; i < EACH; i++) {
            MUST(MPI_Wait(&all[kind][i]->request, MPI_STATUS_IGNORE));
            collective_check(all[kind][i]);
            collective_delete(all[kind][i]);
        }
    for (int i = 0; i < 2; i++) {
        MUST(MPI_Comm_free(&graphs[i]));
        MUST(MPI_Comm_free(&comms[i]));
    }
    return trial_finish();
}
