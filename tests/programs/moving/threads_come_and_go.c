/* Threads are made, work under locks and conditions, and end, while the main thread communicates.
 * trial: ranks=2 safe_states=clock,barrier flags=-pthread */
#include "../moving.h"
#include <pthread.h>
#include <stdatomic.h>

#define WORKERS 3

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static uint64_t queue, taken, total;
static int ending;
static __thread uint64_t own;

static void *worker(void *argument) {
    own = (uintptr_t)argument;
    pthread_mutex_lock(&mutex);
    for (;;) {
        while (queue == taken && !ending) pthread_cond_wait(&condition, &mutex);
        if (queue == taken) break;
        uint64_t item = ++taken;
        pthread_mutex_unlock(&mutex);
        uint64_t value = item;
        for (int i = 0; i < 200; i++) value = trial_mix(value);
        CHECK(own == (uintptr_t)argument, "thread-local variable");
        pthread_mutex_lock(&mutex);
        total += value;
        pthread_cond_broadcast(&condition);
    }
    pthread_mutex_unlock(&mutex);
    return argument;
}

static void *short_lived(void *argument) {
    atomic_fetch_add((atomic_int *)argument, 1);
    return NULL;
}

int main(int argc, char **argv) {
    trial_start_threads(&argc, &argv, MPI_THREAD_FUNNELED);
    pthread_t workers[WORKERS];
    for (int i = 0; i < WORKERS; i++) pthread_create(&workers[i], NULL, worker, (void *)(uintptr_t)(i + 1));
    uint64_t expected = 0;
    for (uint64_t round = 0; moving_agree(round, MPI_COMM_WORLD); round++) {
        atomic_int ran = 0;
        pthread_t brief[2];
        for (int i = 0; i < 2; i++) CHECK(pthread_create(&brief[i], NULL, short_lived, &ran) == 0, "pthread_create");
        pthread_mutex_lock(&mutex);
        uint64_t first = queue;
        queue += 10;
        pthread_cond_broadcast(&condition);
        pthread_mutex_unlock(&mutex);
        for (uint64_t item = first + 1; item <= first + 10; item++) {
            uint64_t value = item;
            for (int i = 0; i < 200; i++) value = trial_mix(value);
            expected += value;
        }
        for (int i = 0; i < 2; i++) CHECK(pthread_join(brief[i], NULL) == 0, "pthread_join");
        CHECK(ran == 2, "%d threads ran", ran);
    }
    pthread_mutex_lock(&mutex);
    ending = 1;
    pthread_cond_broadcast(&condition);
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < WORKERS; i++) {
        void *result = NULL;
        pthread_join(workers[i], &result);
        CHECK(result == (void *)(uintptr_t)(i + 1), "worker %d", i);
    }
    CHECK(total == expected && taken == queue, "%d of %d items, sum wrong: %d", (int)taken, (int)queue, total != expected);
    return trial_finish();
}
