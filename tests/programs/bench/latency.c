/* What small calls cost: each figure is the median over many short rounds, in nanoseconds a call.
 *
 *   mpirun -n 2 latency      prints one line a figure: name nanoseconds
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 101, CALLS = 500 };

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(int rank, const char *name, double *rounds) {
    qsort(rounds, ROUNDS, sizeof *rounds, compare);
    if (rank == 0) printf("%s %.3f\n", name, rounds[ROUNDS / 2]);
}

int main(int argc, char **argv) {
    int rank, other, value;
    char bytes[8] = {0};
    double in = 1, out, rounds[ROUNDS];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    other = 1 - rank;

    for (int round = 0; round < ROUNDS; round++) {
        double begun = MPI_Wtime();
        for (int call = 0; call < CALLS; call++) {
            if (rank == 0) {
                MPI_Send(bytes, 8, MPI_CHAR, other, 0, MPI_COMM_WORLD);
                MPI_Recv(bytes, 8, MPI_CHAR, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            } else {
                MPI_Recv(bytes, 8, MPI_CHAR, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                MPI_Send(bytes, 8, MPI_CHAR, other, 0, MPI_COMM_WORLD);
            }
        }
        rounds[round] = (MPI_Wtime() - begun) / CALLS / 2 * 1e9;
    }
    report(rank, "ping-pong-8B", rounds);

    for (int round = 0; round < ROUNDS; round++) {
        double begun = MPI_Wtime();
        for (int call = 0; call < CALLS; call++) MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        rounds[round] = (MPI_Wtime() - begun) / CALLS * 1e9;
    }
    report(rank, "allreduce-8B", rounds);

    for (int round = 0; round < ROUNDS; round++) {
        double begun = MPI_Wtime();
        for (int call = 0; call < CALLS; call++) MPI_Comm_rank(MPI_COMM_WORLD, &value);
        rounds[round] = (MPI_Wtime() - begun) / CALLS * 1e9;
    }
    report(rank, "comm_rank", rounds);
    MPI_Finalize();
    return 0;
}
