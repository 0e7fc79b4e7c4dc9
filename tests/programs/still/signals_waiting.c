/* Signals of the process that wait to be unblocked, from a timer, from kill and from sigqueue, wait on.
 * trial: ranks=2 */
#include "../common.h"
#include <signal.h>
#include <sys/time.h>

static void expect(const sigset_t *set, int signal) {
    siginfo_t info = {0};
    struct timespec at_once = {0, 0};
    int got = sigtimedwait(set, &info, &at_once);
    CHECK(got == signal, "signal %d instead of %d: %s", got, signal, got < 0 ? strerror(errno) : "");
    if (signal == SIGUSR1) CHECK(info.si_pid == getpid(), "sent by %d", info.si_pid);
    if (signal == SIGRTMIN + 1) CHECK(info.si_value.sival_int == 77, "value %d", info.si_value.sival_int);
}

int main(int argc, char **argv) {
    sigset_t set, waiting;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGRTMIN + 1);
    /* Before MPI starts threads of its own, which inherit the mask. */
    sigprocmask(SIG_BLOCK, &set, NULL);
    trial_start(&argc, &argv);
    struct itimerval soon = {{0, 0}, {0, 1000}};
    setitimer(ITIMER_REAL, &soon, NULL);
    kill(getpid(), SIGUSR1);
    sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = 77});
    do sigpending(&waiting);
    while (!sigismember(&waiting, SIGALRM));
    trial_hold();
    expect(&set, SIGUSR1);
    expect(&set, SIGALRM);
    expect(&set, SIGRTMIN + 1);
    sigpending(&waiting);
    CHECK(!sigismember(&waiting, SIGALRM) && !sigismember(&waiting, SIGUSR1), "a signal has come twice");
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
