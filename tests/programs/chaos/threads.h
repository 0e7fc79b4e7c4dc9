/* Threads, and what they wait for. None of them calls MPI. */
#include "feature.h"
#include <pthread.h>
#include <semaphore.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static pthread_mutex_t plain_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_t mutex_waiter;
static volatile int mutex_passed;
static void *wait_for_mutex(void *argument) {
    pthread_mutex_lock(&plain_mutex);
    mutex_passed = 1;
    pthread_mutex_unlock(&plain_mutex);
    return argument;
}
CARRIED(thread_that_waits_for_a_mutex)
SET(thread_that_waits_for_a_mutex) {
    pthread_mutex_lock(&plain_mutex);
    pthread_create(&mutex_waiter, NULL, wait_for_mutex, NULL);
}
AFTER(thread_that_waits_for_a_mutex) {
    CHECK(!mutex_passed, "it has got past a held mutex");
    pthread_mutex_unlock(&plain_mutex);
    pthread_join(mutex_waiter, NULL);
    CHECK(mutex_passed, "it has not got on");
}

static pthread_mutex_t of_condition = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_t condition_waiter;
static int condition_holds, condition_seen;
static void *wait_for_condition(void *argument) {
    pthread_mutex_lock(&of_condition);
    while (!condition_holds) pthread_cond_wait(&condition, &of_condition);
    condition_seen = 1;
    pthread_mutex_unlock(&of_condition);
    return argument;
}
CARRIED(thread_that_waits_for_a_condition)
SET(thread_that_waits_for_a_condition) { pthread_create(&condition_waiter, NULL, wait_for_condition, NULL); }
AFTER(thread_that_waits_for_a_condition) {
    pthread_mutex_lock(&of_condition);
    condition_holds = 1;
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&of_condition);
    pthread_join(condition_waiter, NULL);
    CHECK(condition_seen, "not woken");
}

static sem_t semaphore;
static pthread_t semaphore_waiter;
static void *wait_for_semaphore(void *argument) {
    while (sem_wait(&semaphore) != 0) CHECK(errno == EINTR, "%s", strerror(errno));
    return argument;
}
CARRIED(thread_that_waits_for_a_semaphore)
SET(thread_that_waits_for_a_semaphore) {
    sem_init(&semaphore, 0, 0);
    pthread_create(&semaphore_waiter, NULL, wait_for_semaphore, &semaphore);
}
AFTER(thread_that_waits_for_a_semaphore) {
    void *result = NULL;
    sem_post(&semaphore);
    pthread_join(semaphore_waiter, &result);
    CHECK(result == &semaphore, "%p", result);
}

static pthread_barrier_t barrier;
static pthread_t barrier_waiters[2];
static void *wait_at_barrier(void *argument) {
    pthread_barrier_wait(&barrier);
    return argument;
}
CARRIED(threads_at_a_barrier)
SET(threads_at_a_barrier) {
    pthread_barrier_init(&barrier, NULL, 3);
    for (int i = 0; i < 2; i++) pthread_create(&barrier_waiters[i], NULL, wait_at_barrier, NULL);
}
AFTER(threads_at_a_barrier) {
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 2; i++) pthread_join(barrier_waiters[i], NULL);
}

static pthread_rwlock_t shared_lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_t writer;
static volatile int written;
static void *wait_to_write(void *argument) {
    pthread_rwlock_wrlock(&shared_lock);
    written = 1;
    pthread_rwlock_unlock(&shared_lock);
    return argument;
}
CARRIED(thread_that_waits_to_write)
SET(thread_that_waits_to_write) {
    pthread_rwlock_rdlock(&shared_lock);
    pthread_create(&writer, NULL, wait_to_write, NULL);
}
AFTER(thread_that_waits_to_write) {
    CHECK(!written, "it writes beside a reader");
    pthread_rwlock_unlock(&shared_lock);
    pthread_join(writer, NULL);
    CHECK(written, "it has not written");
}

static pthread_mutex_t robust;
static void *dies_with_it(void *argument) {
    pthread_mutex_lock(&robust);
    return argument;
}
CARRIED(robust_mutex_of_a_dead_thread)
SET(robust_mutex_of_a_dead_thread) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&robust, &attributes);
    pthread_t thread;
    pthread_create(&thread, NULL, dies_with_it, NULL);
    pthread_join(thread, NULL);
}
AFTER(robust_mutex_of_a_dead_thread) {
    CHECK(pthread_mutex_lock(&robust) == EOWNERDEAD, "its owner lives");
    pthread_mutex_consistent(&robust);
    pthread_mutex_unlock(&robust);
    CHECK(pthread_mutex_lock(&robust) == 0, "it cannot be locked again");
    pthread_mutex_unlock(&robust);
}

static pthread_mutex_t recursive;
CARRIED(mutex_locked_twice)
SET(mutex_locked_twice) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&recursive, &attributes);
    pthread_mutex_lock(&recursive);
    pthread_mutex_lock(&recursive);
}
AFTER(mutex_locked_twice) {
    CHECK(pthread_mutex_lock(&recursive) == 0, "its owner may not");
    for (int i = 0; i < 3; i++) CHECK(pthread_mutex_unlock(&recursive) == 0, "unlock %d", i);
    CHECK(pthread_mutex_unlock(&recursive) == EPERM, "a fourth");
}

static pthread_key_t key;
static int destroyed;
static pthread_t keeper;
static sem_t keeper_ends;
static void destroy(void *value) { destroyed = *(int *)value; }
static void *keep(void *argument) {
    static int value = 55;
    pthread_setspecific(key, &value);
    while (sem_wait(&keeper_ends) != 0) {}
    CHECK(pthread_getspecific(key) == &value, "another value");
    return argument;
}
CARRIED(data_of_a_thread)
SET(data_of_a_thread) {
    sem_init(&keeper_ends, 0, 0);
    pthread_key_create(&key, destroy);
    pthread_create(&keeper, NULL, keep, NULL);
}
AFTER(data_of_a_thread) {
    sem_post(&keeper_ends);
    pthread_join(keeper, NULL);
    CHECK(destroyed == 55, "%d", destroyed);
}

static __thread int own_number;
static pthread_t counter_thread;
static volatile int count_on = 1;
static void *count_up(void *argument) {
    own_number = 1000;
    while (count_on) own_number++;
    CHECK(own_number > 1000, "%d", own_number);
    return argument;
}
CARRIED(thread_that_computes)
SET(thread_that_computes) {
    own_number = 7;
    pthread_create(&counter_thread, NULL, count_up, NULL);
}
AFTER(thread_that_computes) {
    count_on = 0;
    pthread_join(counter_thread, NULL);
    CHECK(own_number == 7, "%d", own_number);
}

static pthread_t named_thread;
static sem_t named_ends;
static void *bear_a_name(void *argument) {
    while (sem_wait(&named_ends) != 0) {}
    char name[17] = "";
    prctl(PR_GET_NAME, name);
    CHECK(strcmp(name, "has a name") == 0, "'%s'", name);
    return argument;
}
CARRIED(name_and_processors_of_a_thread)
SET(name_and_processors_of_a_thread) {
    sem_init(&named_ends, 0, 0);
    pthread_create(&named_thread, NULL, bear_a_name, NULL);
    pthread_setname_np(named_thread, "has a name");
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    CHECK(pthread_setaffinity_np(named_thread, sizeof one, &one) == 0, "affinity");
}
AFTER(name_and_processors_of_a_thread) {
    cpu_set_t set;
    CHECK(pthread_getaffinity_np(named_thread, sizeof set, &set) == 0 && CPU_COUNT(&set) == 1 && CPU_ISSET(0, &set), "%d processors", CPU_COUNT(&set));
    sem_post(&named_ends);
    pthread_join(named_thread, NULL);
}

static pthread_t stopped_thread;
static void *sleep_for_ever(void *argument) {
    for (;;) pause();
    return argument;
}
CARRIED(thread_to_be_cancelled)
SET(thread_to_be_cancelled) { pthread_create(&stopped_thread, NULL, sleep_for_ever, NULL); }
AFTER(thread_to_be_cancelled) {
    void *result = NULL;
    CHECK(pthread_cancel(stopped_thread) == 0, "cancel");
    pthread_join(stopped_thread, &result);
    CHECK(result == PTHREAD_CANCELED, "%p", result);
}

static pthread_t reader_thread;
static int read_by_thread[2];
static void *read_a_byte(void *argument) {
    char byte = 0;
    ssize_t count;
    while ((count = read(read_by_thread[0], &byte, 1)) == -1 && errno == EINTR) {}
    CHECK(count == 1 && byte == 'b', "%zd, '%c'", count, byte);
    return argument;
}
CARRIED(thread_that_reads_from_a_pipe)
SET(thread_that_reads_from_a_pipe) {
    DOES(pipe(read_by_thread));
    pthread_create(&reader_thread, NULL, read_a_byte, NULL);
}
AFTER(thread_that_reads_from_a_pipe) {
    DOES(write(read_by_thread[1], "b", 1));
    pthread_join(reader_thread, NULL);
}

static int named_semaphore_value;
static sem_t *named_semaphore;
CARRIED(semaphore_with_a_name)
SET(semaphore_with_a_name) {
    char name[64];
    snprintf(name, sizeof name, "/chaos-semaphore-%d", (int)getpid());
    named_semaphore = sem_open(name, O_CREAT | O_EXCL, 0600, 2);
    CHECK(named_semaphore != SEM_FAILED, "%s", strerror(errno));
    sem_unlink(name);
}
AFTER(semaphore_with_a_name) {
    sem_getvalue(named_semaphore, &named_semaphore_value);
    CHECK(named_semaphore_value == 2, "%d", named_semaphore_value);
    CHECK(sem_trywait(named_semaphore) == 0 && sem_post(named_semaphore) == 0, "%s", strerror(errno));
}
