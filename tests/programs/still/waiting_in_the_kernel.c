/* Threads that wait in the kernel - for a signal, a descriptor, a futex - do not notice the checkpoint: no wait ends
 * before what it waits for has come.
 * trial: ranks=1,2 flags=-pthread */
#include "../common.h"

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/select.h>

enum { PAUSE, SIGSUSPEND, POLL, PPOLL, SELECT, PSELECT, EPOLL_WAIT, EPOLL_PWAIT, SIGWAIT, SIGTIMEDWAIT, SEM_WAIT, COND, READ, WAYS };
static const char *names[] = {"pause", "sigsuspend", "poll", "ppoll", "select", "pselect", "epoll_wait", "epoll_pwait",
                              "sigwait", "sigtimedwait", "sem_wait", "pthread_cond_timedwait", "read"};
static int pipes[WAYS][2], epolls[WAYS];
static atomic_int begun, returned[WAYS], woken[WAYS];
static sem_t semaphore;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int told;
static __thread volatile int handled;

static void handler(int signal) {
    (void)signal;
    handled++;
}

static void *body(void *argument) {
    int way = (int)(intptr_t)argument, result = -2, got = 0, wanted = 1, why = 0;
    char byte = 0;
    sigset_t none, wait_for;
    sigemptyset(&none);
    sigemptyset(&wait_for);
    sigaddset(&wait_for, SIGUSR2);
    struct timespec long_time = {3600, 0};
    struct pollfd poll_for = {.fd = pipes[way][0], .events = POLLIN};
    struct epoll_event event = {0};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(pipes[way][0], &set);
    begun++;
    errno = 0;
    switch (way) {
    case PAUSE: result = pause(), wanted = -1; break;
    case SIGSUSPEND: {
        sigset_t mask;
        sigfillset(&mask);
        sigdelset(&mask, SIGUSR1);
        result = sigsuspend(&mask), wanted = -1;
        break;
    }
    case POLL: result = poll(&poll_for, 1, -1); break;
    case PPOLL: result = ppoll(&poll_for, 1, &long_time, &none); break;
    case SELECT: {
        struct timeval time = {3600, 0};
        result = select(pipes[way][0] + 1, &set, NULL, NULL, &time);
        break;
    }
    case PSELECT: result = pselect(pipes[way][0] + 1, &set, NULL, NULL, &long_time, &none); break;
    case EPOLL_WAIT: result = epoll_wait(epolls[way], &event, 1, -1); break;
    case EPOLL_PWAIT: result = epoll_pwait(epolls[way], &event, 1, 3600 * 1000, &none); break;
    case SIGWAIT: result = sigwait(&wait_for, &got), wanted = 0; break;
    case SIGTIMEDWAIT: result = sigtimedwait(&wait_for, NULL, &long_time), wanted = SIGUSR2; break;
    case SEM_WAIT: result = sem_wait(&semaphore), wanted = 0; break;
    case COND: {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 3600;
        pthread_mutex_lock(&mutex);
        while (!told && result != ETIMEDOUT) result = pthread_cond_timedwait(&condition, &mutex, &until);
        pthread_mutex_unlock(&mutex);
        wanted = 0;
        break;
    }
    case READ: result = (int)read(pipes[way][0], &byte, 1); break;
    }
    why = errno;
    returned[way] = 1;
    CHECK(woken[way], "%s has returned %d (%s) before it was woken", names[way], result, strerror(why));
    CHECK(result == wanted, "%s gives %d: %s", names[way], result, strerror(why));
    if (way == PAUSE || way == SIGSUSPEND) CHECK(why == EINTR && handled == 1, "%s: %d handled", names[way], handled);
    if (way == SIGWAIT) CHECK(got == SIGUSR2, "signal %d", got);
    if (way == READ) CHECK(byte == 'x', "byte %d", byte);
    return NULL;
}

int main(int argc, char **argv) {
    trial_start_threads(&argc, &argv, MPI_THREAD_FUNNELED);
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGUSR1, &action, NULL);
    sigset_t block;
    sigemptyset(&block);
    sigaddset(&block, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &block, NULL);
    sem_init(&semaphore, 0, 0);
    pthread_t threads[WAYS];
    for (int way = 0; way < WAYS; way++) {
        CHECK(pipe(pipes[way]) == 0, "pipe: %s", strerror(errno));
        epolls[way] = epoll_create1(EPOLL_CLOEXEC);
        struct epoll_event event = {.events = EPOLLIN};
        epoll_ctl(epolls[way], EPOLL_CTL_ADD, pipes[way][0], &event);
        pthread_create(&threads[way], NULL, body, (void *)(intptr_t)way);
    }
    while (begun < WAYS) usleep(1000);
    usleep(50000);
    trial_hold();
    usleep(50000);
    for (int way = 0; way < WAYS; way++) CHECK(!returned[way], "%s has returned", names[way]);
    for (int way = 0; way < WAYS; way++) {
        woken[way] = 1;
        switch (way) {
        case PAUSE:
        case SIGSUSPEND: pthread_kill(threads[way], SIGUSR1); break;
        case SIGWAIT:
        case SIGTIMEDWAIT: pthread_kill(threads[way], SIGUSR2); break;
        case SEM_WAIT: sem_post(&semaphore); break;
        case COND:
            pthread_mutex_lock(&mutex);
            told = 1;
            pthread_cond_signal(&condition);
            pthread_mutex_unlock(&mutex);
            break;
        default: CHECK(write(pipes[way][1], "x", 1) == 1, "write: %s", strerror(errno));
        }
    }
    for (int way = 0; way < WAYS; way++) pthread_join(threads[way], NULL);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
