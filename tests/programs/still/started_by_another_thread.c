/* MPI is started, used and ended by another thread than the process's first one, which the checkpoint finds outside MPI: on
 * even ranks it computes, on odd ones it waits for the other thread's end. For MPI the other thread is the main one.
 * trial: ranks=2,4 flags=-pthread */
#include "../common.h"
#include <pthread.h>
#include <stdatomic.h>

enum { COUNT = 100000 };
static int out[COUNT], in[COUNT];
static atomic_int started, over;

static void expect_main(int wanted, const char *when) {
    int flag = -1, level = -1;
    MUST(MPI_Is_thread_main(&flag));
    MUST(MPI_Query_thread(&level));
    CHECK(flag == wanted && level == MPI_THREAD_FUNNELED, "%s: main %d, level %d", when, flag, level);
}

static void *uses_mpi(void *argument) {
    int provided = -1;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
    trial_know_ranks();
    CHECK(provided == MPI_THREAD_FUNNELED, "level %d granted", provided);
    expect_main(1, "at the start");
    started = 1;

    int next = (trial_rank + 1) % trial_size, previous = (trial_rank + trial_size - 1) % trial_size, sum = 0;
    MPI_Comm twin;
    MPI_Request requests[3];
    MUST(MPI_Comm_dup(MPI_COMM_WORLD, &twin));
    for (int i = 0; i < COUNT; i++) out[i] = trial_rank + i;
    /* A small message that nobody has asked for, a large one that the other side has, a collective operation begun. */
    MUST(MPI_Send(&trial_rank, 1, MPI_INT, next, 1, twin));
    MUST(MPI_Irecv(in, COUNT, MPI_INT, previous, 2, twin, &requests[0]));
    MUST(MPI_Isend(out, COUNT, MPI_INT, next, 2, twin, &requests[1]));
    MUST(MPI_Iallreduce(&trial_rank, &sum, 1, MPI_INT, MPI_SUM, twin, &requests[2]));
    trial_hold();
    expect_main(1, "after the checkpoint");
    int small = -1;
    MUST(MPI_Recv(&small, 1, MPI_INT, previous, 1, twin, MPI_STATUS_IGNORE));
    MUST(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
    CHECK(small == previous, "received %d from %d", small, previous);
    CHECK(sum == trial_size * (trial_size - 1) / 2, "sum %d", sum);
    for (int i = 0; i < COUNT; i++)
        if (in[i] != previous + i) {
            CHECK(0, "element %d is %d", i, in[i]);
            break;
        }
    MUST(MPI_Comm_free(&twin));
    *(int *)argument = trial_finish();
    over = 1;
    return argument;
}

int main(void) {
    int status = -1;
    pthread_t thread;
    pthread_create(&thread, NULL, uses_mpi, &status);
    while (!started) usleep(1000);
    expect_main(0, "on the first thread");
    if (trial_rank % 2 == 0)
        while (!over) trial_compute(0.001);
    pthread_join(thread, NULL);
    return status;
}
