/* All collectives in changing order, blocking and nonblocking, on the world and on a reversed copy of it.
 * trial: ranks=2,4 */
#include "../collectives.h"
#include "../moving.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    MPI_Comm reversed, graphs[2];
    MUST(MPI_Comm_split(MPI_COMM_WORLD, 0, -trial_rank, &reversed));
    MPI_Comm comms[2] = {MPI_COMM_WORLD, reversed};
    for (int i = 0; i < 2; i++) graphs[i] = collective_graph(comms[i]);
    struct collective *pending[4] = {NULL};
    for (uint64_t round = 0; moving_agree(round, MPI_COMM_WORLD); round++)
        for (int step = 0; step < 10; step++) {
            uint64_t draw = trial_mix(round * 10 + step);
            enum kind kind = draw % ALL_KINDS;
            int which = (draw >> 8) % 2, slot = (draw >> 16) % 4, block = (draw >> 24) % 20 == 0 ? 5000 : 1 + (draw >> 24) % 20;
            struct collective *c = collective_make(kind, kind < GLOBAL_KINDS ? comms[which] : graphs[which], block, (int)(draw >> 40) & 7);
            collective_fill(c, (int)(draw >> 33));
            if (draw >> 32 & 1) {
                collective_call(c, BLOCKING);
                collective_check(c);
                collective_delete(c);
                continue;
            }
            if (pending[slot]) {
                MUST(MPI_Wait(&pending[slot]->request, MPI_STATUS_IGNORE));
                collective_check(pending[slot]);
                collective_delete(pending[slot]);
            }
            collective_call(c, NONBLOCKING);
            pending[slot] = c;
        }
    for (int slot = 0; slot < 4; slot++)
        if (pending[slot]) {
            MUST(MPI_Wait(&pending[slot]->request, MPI_STATUS_IGNORE));
            collective_check(pending[slot]);
        }
    for (int i = 0; i < 2; i++) MUST(MPI_Comm_free(&graphs[i]));
    MUST(MPI_Comm_free(&reversed));
    return trial_finish();
}
