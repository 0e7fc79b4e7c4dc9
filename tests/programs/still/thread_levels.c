/* The granted thread level is kept; under MULTIPLE several threads, one at a time, go on calling MPI.
 * trial: ranks=2 safe_states=clock,barrier flags=-pthread */
#include "../common.h"
#include <pthread.h>

#define THREADS 3

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static int provided;

static void *exchange(void *argument) {
    int me = (int)(intptr_t)argument, peer = 1 - trial_rank, main_thread = 1, got = -1;
    for (int round = 0; round < 4; round++) {
        if (round == 2) trial_wait();
        pthread_mutex_lock(&turn);
        MUST(MPI_Is_thread_main(&main_thread));
        CHECK(!main_thread, "another thread is the main one");
        MPI_Request request;
        int value = 100 * me + round;
        MUST(MPI_Isend(&value, 1, MPI_INT, peer, me, MPI_COMM_WORLD, &request));
        pthread_mutex_unlock(&turn);
        for (int done = 0; !done;) {
            int here = 0;
            pthread_mutex_lock(&turn);
            MUST(MPI_Iprobe(peer, me, MPI_COMM_WORLD, &here, MPI_STATUS_IGNORE));
            if (here) {
                MUST(MPI_Recv(&got, 1, MPI_INT, peer, me, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
                MUST(MPI_Wait(&request, MPI_STATUS_IGNORE));
                done = 1;
            }
            pthread_mutex_unlock(&turn);
            if (!done) usleep(200);
        }
        CHECK(got == 100 * me + round, "thread %d round %d: got %d", me, round, got);
    }
    return NULL;
}

int main(int argc, char **argv) {
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    trial_know_ranks();
    CHECK(provided == MPI_THREAD_MULTIPLE, "level %d granted", provided);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, exchange, (void *)(intptr_t)i);
    trial_hold();
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    int level = -1, sum = 0, one = 1;
    MUST(MPI_Query_thread(&level));
    CHECK(level == provided, "level %d, was %d", level, provided);
    MUST(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == trial_size, "sum %d", sum);
    return trial_finish();
}
