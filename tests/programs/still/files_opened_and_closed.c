/* Threads that open, duplicate and close files all the time are stopped anywhere in between: each descriptor is theirs or nobody's after a
 * restart, never the real MPI's.
 * trial: ranks=2 flags=-pthread */
#include "../common.h"
#include <pthread.h>
#include <sys/eventfd.h>

static volatile int end;
static volatile long turns[2];

static void *churn(void *argument) {
    int which = argument != NULL;
    while (!end) {
        int file = which ? eventfd(0, EFD_CLOEXEC) : open("/dev/null", O_RDWR | O_CLOEXEC);
        CHECK(file >= 0, "open: %s", strerror(errno));
        int other = which ? fcntl(file, F_DUPFD, 50) : dup(file);
        CHECK(other >= 0 && other != file, "another one: %d, %s", other, strerror(errno));
        CHECK(write(other, "written\n", 8) == 8, "write: %s", strerror(errno));
        CHECK(close(file) == 0, "close: %s", strerror(errno));
        CHECK(close(other) == 0, "close another: %s", strerror(errno));
        turns[which]++;
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[2];
    trial_start_threads(&argc, &argv, MPI_THREAD_FUNNELED);
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], NULL, churn, (void *)i);
    trial_hold();
    long before[2] = {turns[0], turns[1]};
    for (int i = 0; i < 2; i++)
        while (turns[i] < before[i] + 10 && !trial_failures) usleep(1000);
    int sum = 0, one = 1;
    MUST(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == trial_size, "a sum of %d", sum);
    end = 1;
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return trial_finish();
}
