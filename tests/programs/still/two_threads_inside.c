/* Two threads of a rank are blocked inside MPI at once, and both get their messages.
 * trial: ranks=2 flags=-pthread */
#include "../common.h"
#include <pthread.h>

static void *receive(void *argument) {
    int tag = (int)(intptr_t)argument, value = -1;
    MUST(MPI_Recv(&value, 1, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(value == 10 * tag, "thread %d got %d", tag, value);
    return NULL;
}

int main(int argc, char **argv) {
    trial_start_threads(&argc, &argv, MPI_THREAD_MULTIPLE);
    if (trial_rank == 1) {
        pthread_t threads[2];
        for (intptr_t i = 0; i < 2; i++) pthread_create(&threads[i], NULL, receive, (void *)(i + 1));
        usleep(50000);
        trial_ready();
        for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    } else {
        trial_hold();
        for (int tag = 2; tag > 0; tag--) {
            int value = 10 * tag;
            MUST(MPI_Send(&value, 1, MPI_INT, 1, tag, MPI_COMM_WORLD));
        }
    }
    return trial_finish();
}
