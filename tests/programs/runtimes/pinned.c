/* An OpenMP team that is bound to places, and stays so. */
#define _GNU_SOURCE
#include "steps.h"
#include <omp.h>
#include <sched.h>

enum { STEPS = 100, THREADS = 4 };

int main(int argc, char **argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    double total = 0;
    int moved = 0;
    static cpu_set_t first[THREADS];
    for (int step = 0; step < STEPS; step++) {
        double mine = 0;
#pragma omp parallel num_threads(THREADS) reduction(+ : mine, moved)
        {
            int me = omp_get_thread_num();
            cpu_set_t now;
            sched_getaffinity(0, sizeof now, &now);
            if (step == 0) first[me] = now;
            moved += !CPU_EQUAL(&now, &first[me]) || omp_get_place_num() < 0;
#pragma omp for
            for (int i = 0; i < 100000; i++) mine += i % (step + 7);
        }
        total += steps_sum(mine);
        if (step == STEPS / 2) steps_half_way();
    }
    MPI_Finalize();
    printf("total %.0f, %d moved, bind %d\n", total, moved, (int)omp_get_proc_bind());
    return 0;
}
