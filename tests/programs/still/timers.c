/* An interval timer keeps ticking, an alarm set before still comes, sleeping and timed waits end.
 * trial: ranks=2 flags=-pthread */
#include "../common.h"
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

static volatile int ticks, alarms;

static void tick(int number) {
    (void)number;
    ticks++;
}

static void alarmed(int number) {
    (void)number;
    alarms++;
}

static void *timed(void *argument) {
    /* A wait with a time limit that lies behind the checkpoint. */
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 3;
    pthread_mutex_lock(&mutex);
    int error = 0;
    while (error == 0) error = pthread_cond_timedwait(&condition, &mutex, &limit);
    pthread_mutex_unlock(&mutex);
    CHECK(error == ETIMEDOUT, "timed wait ended with %s", strerror(error));
    return argument;
}

int main(int argc, char **argv) {
    trial_start_threads(&argc, &argv, MPI_THREAD_FUNNELED);
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
    sigaction(SIGVTALRM, &action, NULL);
    action.sa_handler = alarmed;
    sigaction(SIGALRM, &action, NULL);
    pthread_t thread;
    pthread_create(&thread, NULL, timed, NULL);
    struct itimerval interval = {{0, 5000}, {0, 5000}}, left;
    setitimer(ITIMER_VIRTUAL, &interval, NULL);
    alarm(4);
    trial_ready();
    while (!trial_go()) poll(NULL, 0, 50);
    int before = ticks;
    trial_compute(0.3);
    CHECK(ticks > before, "the interval timer has stopped at %d", before);
    getitimer(ITIMER_VIRTUAL, &left);
    CHECK(left.it_interval.tv_usec == 5000, "interval of %ld us", (long)left.it_interval.tv_usec);
    for (int i = 0; i < 1000 && !alarms; i++) usleep(10000);
    CHECK(alarms == 1, "%d alarms", alarms);
    double start = trial_seconds();
    struct timespec pause = {0, 50000000};
    while (nanosleep(&pause, &pause) != 0) CHECK(errno == EINTR, "nanosleep: %s", strerror(errno));
    CHECK(trial_seconds() - start >= 0.05, "slept too little");
    pthread_join(thread, NULL);
    memset(&interval, 0, sizeof interval);
    setitimer(ITIMER_VIRTUAL, &interval, NULL);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
