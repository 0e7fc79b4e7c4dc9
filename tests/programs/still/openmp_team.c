/* A team of OpenMP threads is kept: the same threads, with their threadprivate variables, carry on.
 * trial: ranks=2 flags=-fopenmp */
#include "../common.h"
#include <omp.h>

#define TEAM 3
#define COUNT 100000

static uint64_t own;
#pragma omp threadprivate(own)

int main(int argc, char **argv) {
    trial_start_threads(&argc, &argv, MPI_THREAD_FUNNELED);
    omp_set_dynamic(0);
    omp_set_num_threads(TEAM);
    pid_t ids[TEAM] = {0}, again[TEAM] = {0};
    double *values = malloc(COUNT * sizeof *values), total = 0;
#pragma omp parallel
    {
        own = trial_mix(omp_get_thread_num() + 10 * trial_rank);
        ids[omp_get_thread_num()] = gettid();
#pragma omp for
        for (int i = 0; i < COUNT; i++) values[i] = i * 0.5;
    }
    trial_hold();
#pragma omp parallel
    {
        int me = omp_get_thread_num();
        again[me] = gettid();
#pragma omp critical
        CHECK(own == trial_mix(me + 10 * trial_rank), "threadprivate variable of thread %d", me);
    }
    for (int i = 0; i < TEAM; i++) CHECK(ids[i] == again[i], "thread %d is %d, was %d", i, again[i], ids[i]);
    for (int round = 0; round < 50; round++) {
        double sum = 0;
#pragma omp parallel for reduction(+ : sum) schedule(dynamic, 1000)
        for (int i = 0; i < COUNT; i++) sum += values[i];
        MUST(MPI_Allreduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
        CHECK(total == trial_size * 0.5 * (COUNT - 1.0) * COUNT / 2, "round %d: sum %f", round, total);
    }
    return trial_finish();
}
