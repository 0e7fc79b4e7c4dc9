/* A rank computes for a minute without calling MPI; the checkpoint does not wait for it.
 * trial: ranks=2 */
#include "../common.h"

static uint64_t steps(uint64_t state, uint64_t count) {
    while (count--) state = trial_mix(state);
    return state;
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    uint64_t state = trial_rank, done = 0, value = 0;
    if (trial_rank == 1) {
        trial_ready();
        /* A minute, unless told to go on earlier; no system call but the look at the file, once a second. */
        double until = trial_seconds() + 60, look = trial_seconds() + 1;
        while (trial_seconds() < until) {
            state = steps(state, 100000);
            done += 100000;
            if (trial_seconds() > look) {
                if (trial_go()) break;
                look += 1;
            }
        }
        CHECK(trial_go(), "computed for a minute, and nobody came");
        MUST(MPI_Send(&done, 1, MPI_UINT64_T, 0, 1, MPI_COMM_WORLD));
        MUST(MPI_Send(&state, 1, MPI_UINT64_T, 0, 2, MPI_COMM_WORLD));
    } else {
        trial_ready();
        MUST(MPI_Recv(&done, 1, MPI_UINT64_T, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        MUST(MPI_Recv(&value, 1, MPI_UINT64_T, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(value == steps(1, done), "after %llu steps: another result", (unsigned long long)done);
    }
    return trial_finish();
}
