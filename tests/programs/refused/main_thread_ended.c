/* The main thread ends, and another one goes on with the program: the checkpoint refuses.
 * trial: ranks=2 flags=-pthread refuses=main-thread-ended */
#include "../common.h"
#include <pthread.h>

static void *rest(void *main_thread) {
    pthread_join(*(pthread_t *)main_thread, NULL);
    int sum = 0;
    MUST(MPI_Allreduce(&trial_rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == trial_size * (trial_size - 1) / 2, "%d", sum);
    trial_hold();
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    exit(trial_finish());
}

int main(int argc, char **argv) {
    trial_start_threads(&argc, &argv, MPI_THREAD_SERIALIZED);
    static pthread_t main_thread, other;
    main_thread = pthread_self();
    pthread_create(&other, NULL, rest, &main_thread);
    pthread_exit(NULL);
}
