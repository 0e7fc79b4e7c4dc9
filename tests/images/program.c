/* The program of the stored images (`make`): two ranks hold a little of everything that MPI gives, and check it again and again. What it says must not depend
 * on a clock or on a file: it is carried on on other machines. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { STEPS = 400, NUMBERS = 1000 };

static int rank, wrong;

static void check(int holds, const char *what, int step) {
    if (holds) return;
    wrong = 1;
    fprintf(stderr, "WRONG rank %d, step %d: %s\n", rank, step, what);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int other = 1 - rank;
    MPI_Comm both;
    MPI_Comm_dup(MPI_COMM_WORLD, &both);
    MPI_Datatype every_second;
    MPI_Type_vector(NUMBERS / 2, 1, 2, MPI_LONG, &every_second);
    MPI_Type_commit(&every_second);
    /* A message that is under way all the time, and one that is waited for. */
    long early = 100 + rank, late = 0, got = 0;
    MPI_Request sent, expected, persistent;
    MPI_Isend(&early, 1, MPI_LONG, other, 1, both, &sent);
    MPI_Irecv(&late, 1, MPI_LONG, other, 2, both, &expected);
    long *numbers = malloc(NUMBERS * sizeof *numbers);
    for (int i = 0; i < NUMBERS; i++) numbers[i] = i * (rank + 1);
    MPI_Send_init(numbers, 1, every_second, other, 3, both, &persistent);
    long sum = 0;
    for (int step = 0; step < STEPS; step++) {
        long mine = step + rank, all = 0, halves[NUMBERS / 2];
        MPI_Start(&persistent);
        MPI_Recv(halves, NUMBERS / 2, MPI_LONG, other, 3, both, MPI_STATUS_IGNORE);
        MPI_Wait(&persistent, MPI_STATUS_IGNORE);
        for (int i = 0; i < NUMBERS / 2; i++) check(halves[i] == 2L * i * (other + 1), "every second number", step);
        MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, both);
        check(all == 2L * step + 1, "the sum of both", step);
        sum += all;
        if (step == 20 && rank == 0) {
            puts("READY");
            fflush(stdout);
        }
        nanosleep(&(struct timespec){0, 10 * 1000 * 1000}, NULL);
    }
    MPI_Recv(&got, 1, MPI_LONG, other, 1, both, MPI_STATUS_IGNORE);
    check(got == 100 + other, "the early message", STEPS);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    got = 200 + rank;
    MPI_Send(&got, 1, MPI_LONG, other, 2, both);
    MPI_Wait(&expected, MPI_STATUS_IGNORE);
    check(late == 200 + other, "the late message", STEPS);
    check(sum == (long)STEPS * STEPS, "the sum of all steps", STEPS);
    MPI_Request_free(&persistent);
    MPI_Type_free(&every_second);
    MPI_Comm_free(&both);
    free(numbers);
    MPI_Finalize();
    if (!wrong) printf("RIGHT %d\n", rank);
    return wrong;
}
