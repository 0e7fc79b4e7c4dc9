/* Threads that spin, wait for a condition, a semaphore, a barrier or a mutex, sleep, or hold a recursive mutex, all go on
 * and can be joined.
 * trial: ranks=2 flags=-pthread */
#include "../common.h"
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/syscall.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, held = PTHREAD_MUTEX_INITIALIZER, recursive;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t semaphore;
static atomic_int let_go, begun;
static int told;
static pthread_key_t key;
static __thread uint64_t mine;

static void *body(void *argument) {
    intptr_t which = (intptr_t)argument;
    pthread_t self = pthread_self();
    pid_t tid = gettid();
    char name[16], got[16] = "";
    snprintf(name, sizeof name, "worker-%d", (int)which);
    pthread_setname_np(self, name);
    pthread_setspecific(key, argument);
    mine = trial_mix(which);
    uint64_t spins = 0;
    if (which == 7) {
        pthread_mutex_lock(&recursive);
        pthread_mutex_lock(&recursive);
        pthread_mutex_lock(&recursive);
    }
    begun++;
    switch (which) {
    case 0:
        while (!let_go) spins++;
        break;
    case 1:
        pthread_mutex_lock(&mutex);
        while (!told) pthread_cond_wait(&condition, &mutex);
        pthread_mutex_unlock(&mutex);
        break;
    case 2:
        while (sem_wait(&semaphore) != 0) CHECK(errno == EINTR, "sem_wait: %s", strerror(errno));
        break;
    case 3: pthread_barrier_wait(&barrier); break;
    case 4:
        pthread_mutex_lock(&held);
        pthread_mutex_unlock(&held);
        break;
    case 5:
        while (!let_go) usleep(10000);
        break;
    case 6:
        pthread_rwlock_wrlock(&rwlock);
        pthread_rwlock_unlock(&rwlock);
        break;
    case 7:
        while (!let_go) usleep(1000);
        CHECK(pthread_mutex_unlock(&recursive) == 0, "the holder cannot unlock");
        CHECK(pthread_mutex_unlock(&recursive) == 0, "the holder cannot unlock");
        CHECK(pthread_mutex_lock(&recursive) == 0, "the holder cannot lock again");
        CHECK(pthread_mutex_unlock(&recursive) == 0 && pthread_mutex_unlock(&recursive) == 0, "unlock");
        CHECK(pthread_mutex_unlock(&recursive) == EPERM, "unlocked more often than locked");
        break;
    }
    CHECK(mine == trial_mix(which), "thread-local variable of thread %d", (int)which);
    CHECK(pthread_getspecific(key) == argument, "specific value of thread %d", (int)which);
    CHECK(pthread_equal(self, pthread_self()) && gettid() == tid, "thread %d is another one: %d, was %d", (int)which,
          gettid(), tid);
    pthread_getname_np(pthread_self(), got, sizeof got);
    CHECK(strcmp(got, name) == 0, "thread %d is called '%s'", (int)which, got);
    return (void *)(which * 11);
}

int main(int argc, char **argv) {
    trial_start_threads(&argc, &argv, MPI_THREAD_FUNNELED);
    pthread_t threads[8], more[4];
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&recursive, &attributes);
    pthread_barrier_init(&barrier, NULL, 2);
    sem_init(&semaphore, 0, 0);
    pthread_key_create(&key, NULL);
    pthread_mutex_lock(&held);
    pthread_rwlock_rdlock(&rwlock);
    for (intptr_t i = 0; i < 8; i++) pthread_create(&threads[i], NULL, body, (void *)i);
    while (begun < 8) usleep(1000);
    usleep(20000);
    trial_hold();
    /* Threads made now live beside the old ones. */
    let_go = 1;
    pthread_mutex_lock(&mutex);
    told = 1;
    pthread_cond_broadcast(&condition);
    pthread_mutex_unlock(&mutex);
    sem_post(&semaphore);
    pthread_barrier_wait(&barrier);
    pthread_mutex_unlock(&held);
    pthread_rwlock_unlock(&rwlock);
    for (intptr_t i = 0; i < 8; i++) {
        void *result = NULL;
        CHECK(pthread_join(threads[i], &result) == 0 && result == (void *)(i * 11), "thread %d", (int)i);
    }
    for (intptr_t i = 0; i < 4; i++) pthread_create(&more[i], NULL, body, (void *)(intptr_t)(i == 0 ? 0 : 5));
    for (int i = 0; i < 4; i++) pthread_join(more[i], NULL);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
