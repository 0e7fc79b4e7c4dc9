/* What the programs that never hold still share: they work until rank 0 sees `go`, at least a number of rounds, and
 * check every value on the way.
 */
#ifndef TRIAL_MOVING_H
#define TRIAL_MOVING_H

#include "common.h"

#define LEAST_ROUNDS 20

/* Whether there will be a round after this one. Only rank 0 asks; the others hear of it in the round's messages. The
 * first rounds go by before the program says that it is ready. */
static inline int moving_goes_on(uint64_t round) {
    if (round == LEAST_ROUNDS) trial_ready();
    if (round <= LEAST_ROUNDS) return 1;
    /* Looking at the file system in every round would slow the fast ones down. */
    static double looked;
    double now = trial_seconds();
    if (now - looked < 0.01) return 1;
    looked = now;
    return !trial_go();
}


/* A wrong value on one rank ends the program on all. */
static inline int moving_agree(uint64_t round, MPI_Comm comm) {
    int mine[2] = {trial_rank == 0 ? !moving_goes_on(round) : 0, trial_failures != 0}, all[2];
    MUST(MPI_Allreduce(mine, all, 2, MPI_INT, MPI_MAX, comm));
    return !all[0] && !all[1];
}

#endif
