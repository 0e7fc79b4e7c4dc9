/* The thread that calls MPI waits in the kernel, in another way on each rank, and does not notice the checkpoint: its
 * wait ends when what it waits for has come.
 * trial: ranks=1,2,4 flags=-pthread */
#include "../common.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/select.h>

static const char *names[] = {"pause", "sigsuspend", "ppoll", "pselect", "epoll_pwait", "sigtimedwait", "poll"};
static int ends[2], way;
static atomic_int woken, waits;
static volatile int handled;
static pthread_t caller;

static void handler(int signal) {
    (void)signal;
    handled++;
}

/* Holds for the checkpoint while the other thread waits, then lets that one go on. */
static void *body(void *argument) {
    while (!waits) usleep(1000);
    usleep(50000);
    trial_hold();
    usleep(50000);
    woken = 1;
    if (way < 2) pthread_kill(caller, SIGUSR1);
    else if (way == 5) pthread_kill(caller, SIGUSR2);
    else CHECK(write(ends[1], "x", 1) == 1, "write: %s", strerror(errno));
    return argument;
}

int main(int argc, char **argv) {
    trial_start_threads(&argc, &argv, MPI_THREAD_FUNNELED);
    way = (trial_size - 1 + trial_rank) % 7;
    caller = pthread_self();
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGUSR1, &action, NULL);
    sigset_t block, none, wait_for, all_but;
    sigemptyset(&none);
    sigemptyset(&wait_for);
    sigaddset(&wait_for, SIGUSR2);
    sigfillset(&all_but);
    sigdelset(&all_but, SIGUSR1);
    sigemptyset(&block);
    sigaddset(&block, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &block, NULL);
    CHECK(pipe(ends) == 0, "pipe: %s", strerror(errno));
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event);
    struct pollfd poll_for = {.fd = ends[0], .events = POLLIN};
    struct timespec long_time = {3600, 0};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    pthread_t other;
    pthread_create(&other, NULL, body, NULL);

    int result = -2, wanted = 1;
    waits = 1;
    errno = 0;
    switch (way) {
    case 0: result = pause(), wanted = -1; break;
    case 1: result = sigsuspend(&all_but), wanted = -1; break;
    case 2: result = ppoll(&poll_for, 1, &long_time, &none); break;
    case 3: result = pselect(ends[0] + 1, &set, NULL, NULL, &long_time, &none); break;
    case 4: result = epoll_pwait(epoll, &event, 1, 3600 * 1000, &none); break;
    case 5: result = sigtimedwait(&wait_for, NULL, &long_time), wanted = SIGUSR2; break;
    case 6: result = poll(&poll_for, 1, -1); break;
    }
    int why = errno;
    CHECK(woken, "%s has returned %d (%s) before it was woken", names[way], result, strerror(why));
    CHECK(result == wanted, "%s gives %d: %s", names[way], result, strerror(why));
    if (way < 2) CHECK(why == EINTR && handled == 1, "%s: %s, %d handled", names[way], strerror(why), handled);
    pthread_join(other, NULL);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
