/* Needs a name of the real libmpi that is no part of MPI, as OpenSHMEM's library does.
 * trial: ranks=2 */
#include "../common.h"

extern int ompi_mpi_finalize(void);
int (*volatile needed)(void) = ompi_mpi_finalize;

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    CHECK(needed != NULL, "%s", "the name leads nowhere");
    trial_hold();
    int one = trial_rank + 1, all = 0;
    MUST(MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(all == trial_size * (trial_size + 1) / 2, "sum %d", all);
    return trial_finish();
}
