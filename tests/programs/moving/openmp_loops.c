/* OpenMP loops and allreduces by turns.
 * trial: ranks=2 flags=-fopenmp */
#include "../moving.h"
#include <omp.h>

#define COUNT 20000

int main(int argc, char **argv) {
    trial_start_threads(&argc, &argv, MPI_THREAD_FUNNELED);
    omp_set_dynamic(0);
    omp_set_num_threads(2);
    uint64_t *values = malloc(COUNT * sizeof *values);
    for (uint64_t round = 0; moving_agree(round, MPI_COMM_WORLD); round++) {
        uint64_t sum = 0, all = 0;
#pragma omp parallel for schedule(dynamic, 500)
        for (int i = 0; i < COUNT; i++) values[i] = trial_mix(round + i) >> 20;
#pragma omp parallel for reduction(+ : sum)
        for (int i = 0; i < COUNT; i++) sum += values[i];
        MUST(MPI_Allreduce(&sum, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD));
        uint64_t expected = 0;
        for (int i = 0; i < COUNT; i++) expected += trial_mix(round + i) >> 20;
        CHECK(all == expected * trial_size, "round %d", (int)round);
    }
    return trial_finish();
}
