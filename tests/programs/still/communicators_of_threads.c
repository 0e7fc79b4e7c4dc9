/* Two threads make communicators of one group with one tag at a time, each out of another communicator, and intercommunicators alike: none is taken for the other's,
 * also after a restart.
 * trial: ranks=2 flags=-pthread */
#include "../common.h"
#include <pthread.h>

enum { TAG = 7, THREADS = 2 };

static MPI_Comm parents[THREADS], sides[THREADS], made[THREADS], between[THREADS];
static MPI_Group everybody;

/* On each rank another thread comes first. */
static void *make(void *argument) {
    long own = (long)argument;
    if ((own ^ trial_rank) & 1) usleep(150000);
    MUST(MPI_Comm_create_group(parents[own], everybody, TAG, &made[own]));
    if ((own ^ trial_rank) & 1) usleep(150000);
    MUST(MPI_Intercomm_create(sides[own], 0, parents[own], 1 - trial_rank, TAG, &between[own]));
    return NULL;
}

/* Each number comes on the communicator that it was sent on. */
static void talk(void) {
    for (int i = 0; i < THREADS; i++) {
        int other = 1 - trial_rank, mine[2] = {10 + i, 20 + i}, got[2] = {-1, -1};
        MPI_Request requests[2];
        MUST(MPI_Isend(&mine[0], 1, MPI_INT, other, 0, made[i], &requests[0]));
        MUST(MPI_Isend(&mine[1], 1, MPI_INT, 0, 0, between[i], &requests[1]));
        /* In the order in which the other communicator would be the first one. */
        int last = trial_rank == 1 ? THREADS - 1 - i : i;
        MUST(MPI_Recv(&got[0], 1, MPI_INT, other, 0, made[last], MPI_STATUS_IGNORE));
        MUST(MPI_Recv(&got[1], 1, MPI_INT, 0, 0, between[last], MPI_STATUS_IGNORE));
        CHECK(got[0] == 10 + last, "%d came on communicator %d", got[0], last);
        CHECK(got[1] == 20 + last, "%d came on intercommunicator %d", got[1], last);
        MUST(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    }
}

int main(int argc, char **argv) {
    trial_start_threads(&argc, &argv, MPI_THREAD_MULTIPLE);
    pthread_t threads[THREADS];
    MUST(MPI_Comm_group(MPI_COMM_WORLD, &everybody));
    for (int i = 0; i < THREADS; i++) {
        MUST(MPI_Comm_dup(MPI_COMM_WORLD, &parents[i]));
        MUST(MPI_Comm_dup(MPI_COMM_SELF, &sides[i]));
    }
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, make, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    talk();
    trial_hold();
    talk();
    return trial_finish();
}
