/* The only thread waits, in another way on each rank, when a signal asks for a suspend. The program has no handler for it, and does not notice.
 * trial: ranks=4 */
#include "../common.h"
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>

static volatile int handled;

static void handler(int signal) {
    (void)signal;
    handled++;
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    struct epoll_event event;
    struct timespec time = {3, 0};
    sigset_t wait_for;
    sigemptyset(&wait_for);
    sigaddset(&wait_for, SIGUSR2);
    sigprocmask(SIG_BLOCK, &wait_for, NULL);
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGALRM, &action, NULL);
    int descriptor = epoll_create1(0), way = trial_rank % 4, wanted = way == 2 ? -1 : way == 3 ? -1 : 0;
    double begin = trial_seconds();
    if (way == 2) alarm(3);
    trial_ready();
    errno = 0;
    int result = way == 0   ? poll(NULL, 0, 3000)
                 : way == 1 ? epoll_wait(descriptor, &event, 1, 3000)
                 : way == 2 ? pause()
                            : sigtimedwait(&wait_for, NULL, &time);
    int error = errno;
    double took = trial_seconds() - begin;
    CHECK(result == wanted && error == (way == 2 ? EINTR : way == 3 ? EAGAIN : 0), "way %d gives %d: %s", way, result, strerror(error));
    CHECK(took > 2.99 && handled == (way == 2), "way %d is over after %.2f s, %d handled", way, took, handled);
    CHECK(sleep(0) == 0, "%s", "sleep");
    return trial_finish();
}
