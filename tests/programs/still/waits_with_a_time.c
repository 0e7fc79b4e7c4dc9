/* Threads that wait in the kernel for a time: a wait is over when it would have been without the checkpoint, and after a restart when what was left of it is.
 * trial: ranks=1 flags=-pthread */
#include "../common.h"

#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>

enum { POLL, PPOLL, SELECT, EPOLL_WAIT, EPOLL_PWAIT, EPOLL_PWAIT2, SIGTIMEDWAIT, SEMTIMEDOP, FUTEX, NANOSLEEP, SLEEP_REST, RECV, RECVMSG, SEND, WAYS };
static const char *names[] = {"poll",  "ppoll",     "select", "epoll_wait", "epoll_pwait", "epoll_pwait2", "sigtimedwait", "semtimedop",
                              "futex", "nanosleep", "nanosleep with a rest", "recv",       "recvmsg",     "send"};
/* Seconds: of a wait, before anything happens to it, and what a busy machine may add. */
static const double LIMIT = 3, BEFORE = 1.2, SLACK = 0.8;
static double took[WAYS];
static long result[WAYS];
static int why[WAYS];
static atomic_int begun, done;

static long wait_in(int way) {
    struct timespec time = {(time_t)LIMIT, 0}, rest;
    struct timeval short_time = {(time_t)LIMIT, 0};
    int milliseconds = (int)(1000 * LIMIT), word = 0, pair[2];
    char bytes[4096] = {0};
    sigset_t none, wait_for;
    sigemptyset(&none);
    sigemptyset(&wait_for);
    sigaddset(&wait_for, SIGUSR2);
    struct epoll_event event;
    struct sembuf operation = {0, -1, 0};
    struct iovec piece = {bytes, 1};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    switch (way) {
    case POLL: return poll(NULL, 0, milliseconds);
    case PPOLL: return ppoll(NULL, 0, &time, &none);
    case SELECT: return select(0, NULL, NULL, NULL, &short_time);
    case EPOLL_WAIT: return epoll_wait(epoll_create1(0), &event, 1, milliseconds);
    case EPOLL_PWAIT: return epoll_pwait(epoll_create1(0), &event, 1, milliseconds, &none);
    case EPOLL_PWAIT2: return syscall(SYS_epoll_pwait2, epoll_create1(0), &event, 1, &time, &none, 8);
    case SIGTIMEDWAIT: return sigtimedwait(&wait_for, NULL, &time);
    case SEMTIMEDOP: {
        int set = semget(IPC_PRIVATE, 1, 0600);
        long got = semtimedop(set, &operation, 1, &time);
        int error = errno;
        semctl(set, 0, IPC_RMID);
        errno = error;
        return got;
    }
    case FUTEX: return syscall(SYS_futex, &word, FUTEX_WAIT, 0, &time, NULL, 0);
    case NANOSLEEP: return nanosleep(&time, NULL);
    case SLEEP_REST: return nanosleep(&time, &rest);
    }
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) return -2;
    setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &short_time, sizeof short_time);
    setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &short_time, sizeof short_time);
    if (way == RECV) return recv(pair[0], bytes, 1, 0);
    if (way == RECVMSG) return recvmsg(pair[0], &message, 0);
    while (send(pair[0], bytes, sizeof bytes, MSG_DONTWAIT) > 0) {}
    return send(pair[0], bytes, sizeof bytes, 0);
}

static int wanted_error(int way) {
    switch (way) {
    case SIGTIMEDWAIT:
    case SEMTIMEDOP:
    case RECV:
    case RECVMSG:
    case SEND: return EAGAIN;
    case FUTEX: return ETIMEDOUT;
    default: return 0;
    }
}

static void *body(void *argument) {
    int way = (int)(intptr_t)argument;
    double begin = trial_seconds();
    begun++;
    errno = 0;
    result[way] = wait_in(way);
    why[way] = errno;
    took[way] = trial_seconds() - begin;
    done++;
    return NULL;
}

int main(int argc, char **argv) {
    trial_start_threads(&argc, &argv, MPI_THREAD_FUNNELED);
    sigset_t block;
    sigemptyset(&block);
    sigaddset(&block, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &block, NULL);
    pthread_t threads[WAYS];
    for (int way = 0; way < WAYS; way++) pthread_create(&threads[way], NULL, body, (void *)(intptr_t)way);
    double away = 0, before = trial_seconds();
    int told = 0;
    /* How long the process was not there, between two launches, or had no processor. */
    for (double begin = before; done < WAYS; usleep(2000)) {
        double now = trial_seconds();
        if (now - before > 0.05) away += now - before;
        before = now;
        if (!told && now - begin > BEFORE) told = 1, trial_ready();
    }
    for (int way = 0; way < WAYS; way++) {
        pthread_join(threads[way], NULL);
        int wanted = wanted_error(way);
        CHECK(result[way] == (wanted ? -1 : 0) && why[way] == wanted, "%s gives %ld: %s", names[way], result[way], strerror(why[way]));
        CHECK(took[way] >= LIMIT - 0.01, "%s of %g s is over after %.2f s", names[way], LIMIT, took[way]);
        CHECK(took[way] <= LIMIT + away + SLACK, "%s of %g s is over after %.2f s; away for %.2f s", names[way], LIMIT, took[way], away);
    }
    return trial_finish();
}
