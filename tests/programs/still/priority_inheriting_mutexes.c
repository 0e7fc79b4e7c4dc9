/* Mutexes that inherit priority, held, waited for and free, and robust ones whose owner ends, go on as they were: their words name
 * threads.
 * trial: ranks=2 flags=-pthread */
#include "../common.h"
#include <pthread.h>

enum { FREE, HELD, WANTED, RECURSIVE, MUTEXES };
static pthread_mutex_t mutexes[MUTEXES], robust[2];
static volatile int counter, waiting, got;

static void make(pthread_mutex_t *mutex, int type, int is_robust, int protocol) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, type);
    if (is_robust) pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    CHECK(pthread_mutexattr_setprotocol(&attributes, protocol) == 0, "%s", "no priority inheritance here");
    CHECK(pthread_mutex_init(mutex, &attributes) == 0, "%s", "pthread_mutex_init");
}

static void *waits(void *argument) {
    waiting++;
    int error = pthread_mutex_lock(&mutexes[WANTED]);
    CHECK(error == 0, "lock: %s", strerror(error));
    got++;
    CHECK(pthread_mutex_unlock(&mutexes[WANTED]) == 0, "%s", "unlock");
    return argument;
}

static void *locks_all(void *argument) {
    /* Made after the checkpoint; all but the first are held by the main thread. */
    for (int i = HELD; i < MUTEXES; i++) {
        struct timespec limit;
        clock_gettime(CLOCK_REALTIME, &limit);
        limit.tv_nsec += 20000000;
        if (limit.tv_nsec >= 1000000000) limit.tv_nsec -= 1000000000, limit.tv_sec++;
        CHECK(pthread_mutex_trylock(&mutexes[i]) == EBUSY, "mutex %d is not busy", i);
        int error = pthread_mutex_timedlock(&mutexes[i], &limit);
        CHECK(error == ETIMEDOUT, "mutex %d: %s", i, strerror(error));
    }
    *(volatile int *)argument = 1;
    for (int i = HELD; i < MUTEXES; i++) {
        int error = pthread_mutex_lock(&mutexes[i]);
        CHECK(error == 0, "mutex %d: %s", i, strerror(error));
        pthread_mutex_unlock(&mutexes[i]);
    }
    return NULL;
}

static void *counts(void *argument) {
    for (int i = 0; i < 20000; i++) {
        pthread_mutex_lock(&mutexes[FREE]);
        counter++;
        pthread_mutex_unlock(&mutexes[FREE]);
    }
    return argument;
}

static void *ends_holding(void *argument) {
    for (int i = 0; i < 2; i++) {
        int error = pthread_mutex_lock(&robust[i]);
        CHECK(error == 0, "robust mutex %d: %s", i, strerror(error));
    }
    *(volatile int *)argument = 1;
    trial_wait();
    usleep(50000);
    return NULL;
}

int main(int argc, char **argv) {
    trial_start_threads(&argc, &argv, MPI_THREAD_FUNNELED);
    for (int i = 0; i < MUTEXES; i++) make(&mutexes[i], i == RECURSIVE ? PTHREAD_MUTEX_RECURSIVE : PTHREAD_MUTEX_NORMAL, 0, PTHREAD_PRIO_INHERIT);
    make(&robust[0], PTHREAD_MUTEX_NORMAL, 1, PTHREAD_PRIO_INHERIT);
    make(&robust[1], PTHREAD_MUTEX_NORMAL, 1, PTHREAD_PRIO_NONE);
    pthread_mutex_lock(&mutexes[HELD]);
    pthread_mutex_lock(&mutexes[WANTED]);
    pthread_mutex_lock(&mutexes[RECURSIVE]);
    pthread_mutex_lock(&mutexes[RECURSIVE]);
    pthread_t waiter, holder, late, counters[4];
    volatile int holds = 0, tried = 0;
    pthread_create(&waiter, NULL, waits, NULL);
    pthread_create(&holder, NULL, ends_holding, (void *)&holds);
    while (!waiting || !holds) usleep(1000);
    usleep(20000);
    trial_hold();

    CHECK(got == 0, "%s", "the waiter has what is held");
    for (int i = 0; i < 2; i++) {
        int error = pthread_mutex_lock(&robust[i]);
        CHECK(error == EOWNERDEAD, "robust mutex %d: %s", i, strerror(error));
        CHECK(pthread_mutex_consistent(&robust[i]) == 0, "%s", "consistent");
        CHECK(pthread_mutex_unlock(&robust[i]) == 0, "%s", "unlock");
    }
    pthread_create(&late, NULL, locks_all, (void *)&tried);
    while (!tried) usleep(1000);
    CHECK(got == 0, "%s", "the waiter has what is held");
    CHECK(pthread_mutex_unlock(&mutexes[HELD]) == 0, "%s", "unlock");
    CHECK(pthread_mutex_unlock(&mutexes[WANTED]) == 0, "%s", "unlock");
    CHECK(pthread_mutex_lock(&mutexes[RECURSIVE]) == 0, "%s", "a third time");
    for (int i = 0; i < 3; i++) CHECK(pthread_mutex_unlock(&mutexes[RECURSIVE]) == 0, "%s", "unlock");
    pthread_join(waiter, NULL);
    CHECK(got == 1, "%s", "the waiter has nothing");
    pthread_join(late, NULL);
    pthread_join(holder, NULL);
    for (int i = 0; i < 4; i++) pthread_create(&counters[i], NULL, counts, NULL);
    for (int i = 0; i < 4; i++) pthread_join(counters[i], NULL);
    CHECK(counter == 80000, "counted to %d", counter);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
