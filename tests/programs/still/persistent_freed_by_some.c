/* Persistent collectives that some ranks have freed at the checkpoint and others have not, on three communicators and an
 * intercommunicator.
 * trial: ranks=2,4 */
#include "../collectives.h"

enum { EACH = 5 };

/* Sums over the other group, which has the ranks of the other parity. */
static int mine, sum, expected;

static void start_sum(MPI_Request *request, int round) {
    mine = 100 * round + trial_rank, sum = -1, expected = 0;
    for (int rank = !(trial_rank % 2); rank < trial_size; rank += 2) expected += 100 * round + rank;
    MUST(MPI_Start(request));
    MUST(MPI_Wait(request, MPI_STATUS_IGNORE));
    CHECK(sum == expected, "the other group's sum is %d and not %d", sum, expected);
}

int main(int argc, char **argv) {
    static const enum kind kinds[EACH] = {ALLREDUCE, BCAST, ALLGATHER, ALLTOALL, BARRIER};
    trial_start(&argc, &argv);
    MPI_Comm comms[3] = {MPI_COMM_WORLD};
    MUST(MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]));
    MUST(MPI_Comm_dup(comms[1], &comms[2]));
    struct collective *all[3][EACH];
    for (int on = 0; on < 3; on++)
        for (int i = 0; i < EACH; i++) {
            all[on][i] = collective_make(kinds[i], comms[on], 20, 0);
            collective_fill(all[on][i], i);
            collective_call(all[on][i], PERSISTENT);
            MUST(MPI_Start(&all[on][i]->request));
            MUST(MPI_Wait(&all[on][i]->request, MPI_STATUS_IGNORE));
            collective_check(all[on][i]);
        }
    MPI_Comm half, inter;
    MPI_Request sums[3];
    MUST(MPI_Comm_split(comms[1], trial_rank % 2, trial_rank, &half));
    MUST(MPI_Intercomm_create(half, 0, comms[1], !(trial_rank % 2), 7, &inter));
    for (int i = 0; i < 3; i++) {
        MUST(MPIX_Allreduce_init(&mine, &sum, 1, MPI_INT, MPI_SUM, inter, MPI_INFO_NULL, &sums[i]));
        start_sum(&sums[i], i);
    }
    /* The last communicator is given up by all; some requests on it are not. */
    MUST(MPI_Comm_free(&comms[2]));
    int early = trial_rank % 2 == 0;
    for (int after = 0; after < 2; after++) {
        for (int on = 0; on < 3; on++)
            for (int i = 0; i < EACH; i++) {
                /* Each rank frees some before and the others after, on the last communicator all of them; two on each other one stay. */
                int stays = on < 2 && (i == 2 || i == 4), first = on == 2 ? !early : (i % 2 == 0) == early;
                if (!stays && first != after) MUST(MPI_Request_free(&all[on][i]->request));
            }
        if (early != after) MUST(MPI_Request_free(&sums[1]));
        if (!after) trial_hold();
    }
    start_sum(&sums[2], 5);
    start_sum(&sums[0], 6);
    for (int round = 0; round < 3; round++)
        for (int on = 0; on < 2; on++)
            for (int i = 2; i < EACH; i += 2) {
                collective_fill(all[on][i], 10 * round + i);
                MUST(MPI_Start(&all[on][i]->request));
                MUST(MPI_Wait(&all[on][i]->request, MPI_STATUS_IGNORE));
                collective_check(all[on][i]);
            }
    for (int on = 0; on < 3; on++)
        for (int i = 0; i < EACH; i++) {
            if (all[on][i]->request != MPI_REQUEST_NULL) MUST(MPI_Request_free(&all[on][i]->request));
            collective_delete(all[on][i]);
        }
    MUST(MPI_Request_free(&sums[0]));
    MUST(MPI_Request_free(&sums[2]));
    MUST(MPI_Comm_free(&inter));
    MUST(MPI_Comm_free(&half));
    MUST(MPI_Comm_free(&comms[1]));
    return trial_finish();
}
