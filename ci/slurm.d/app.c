/* The job of ci/slurm and ci/cluster: app STEPS LOG [reads]. The digits depend on every step and every rank. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, size, steps = atoi(argv[1]), reads = argc > 3;
    char line[32];
    double x, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    x = 0.3 + 0.1 * rank;
    for (int step = 0; step < steps; step++) {
        x = 3.9 * x * (1 - x);
        MPI_Allreduce(&x, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        x = fmod(x + 1e-3 * sum, 1);
        if (reads)
            x = fgets(line, sizeof line, stdin) ? fmod(x + 1e-6 * atof(line), 1) : -1;
        if (rank == 0 && step % 50 == 0) {
            FILE *log = fopen(argv[2], "a");
            fprintf(log, "step %d\n", step);
            fclose(log);
        }
        usleep(50000);
    }
    if (rank == 0)
        printf("digits %.17g of %d ranks\n", sum, size);
    MPI_Finalize();
    return 0;
}
