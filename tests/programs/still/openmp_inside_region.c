/* The checkpoint comes while all threads of an OpenMP team are inside a parallel region, some at its barrier.
 * trial: ranks=2 flags=-fopenmp */
#include "../common.h"
#include <omp.h>

#define TEAM 3

int main(int argc, char **argv) {
    trial_start_threads(&argc, &argv, MPI_THREAD_FUNNELED);
    uint64_t sums[TEAM] = {0};
    int after[TEAM] = {0};
    omp_set_dynamic(0);
#pragma omp parallel num_threads(TEAM)
    {
        int me = omp_get_thread_num();
        uint64_t state = me;
        if (me == 0) trial_hold();
        else if (me == 1)
            while (!trial_go())
                for (int i = 0; i < 1000; i++) state = trial_mix(state), sums[1]++;
        /* The last one waits at the barrier meanwhile. */
#pragma omp barrier
        for (int i = 0; i < 1000; i++) state += trial_mix(i);
        after[me] = 1;
#pragma omp single
        sums[2] = 5;
    }
    CHECK(after[0] && after[1] && after[2] && sums[2] == 5, "a thread did not come out");
    CHECK(trial_go() == 1 && omp_get_max_threads() >= 1, "team");
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
