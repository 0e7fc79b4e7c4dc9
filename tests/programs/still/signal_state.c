/* Handlers with their flags, ignored and blocked signals, pending ones and the alternate stack are kept.
 * trial: ranks=2 */
#include "../common.h"
#include <signal.h>

static volatile int plain, detailed, on_stack, queued_value;
static char stack[64 << 10];

static void count(int number) {
    (void)number;
    plain++;
}

static void details(int number, siginfo_t *info, void *context) {
    (void)context;
    detailed = number;
    queued_value = info->si_value.sival_int;
}

static void note_stack(int number) {
    (void)number;
    char here;
    on_stack = &here > stack && &here < stack + sizeof stack;
}

int main(int argc, char **argv) {
    /* Blocked before MPI starts threads of its own, which inherit the mask. */
    sigset_t early;
    sigemptyset(&early);
    sigaddset(&early, SIGRTMIN + 3);
    sigaddset(&early, SIGPROF);
    sigprocmask(SIG_BLOCK, &early, NULL);
    trial_start(&argc, &argv);
    struct sigaction action = {.sa_handler = count}, got;
    sigset_t blocked, now;
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack}, current;
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGUSR1);
    sigaction(SIGUSR2, &action, NULL);
    action.sa_sigaction = details;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(SIGRTMIN + 3, &action, NULL);
    signal(SIGHUP, SIG_IGN);
    sigaltstack(&alternate, NULL);
    struct sigaction stacked = {.sa_handler = note_stack, .sa_flags = SA_ONSTACK};
    sigaction(SIGWINCH, &stacked, NULL);
    struct sigaction once = {.sa_handler = count, .sa_flags = SA_RESETHAND};
    sigaction(SIGURG, &once, NULL);
    /* Pending through the checkpoint. */
    sigqueue(getpid(), SIGRTMIN + 3, (union sigval){.sival_int = 1234});
    trial_hold();
    CHECK(detailed == 0, "a blocked signal was delivered");
    sigpending(&now);
    CHECK(sigismember(&now, SIGRTMIN + 3) == 1, "the pending signal is gone");
    sigprocmask(SIG_SETMASK, NULL, &now);
    CHECK(sigismember(&now, SIGPROF) == 1 && sigismember(&now, SIGUSR2) == 0, "the mask is another one");
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGRTMIN + 3);
    sigprocmask(SIG_UNBLOCK, &blocked, NULL);
    CHECK(detailed == SIGRTMIN + 3 && queued_value == 1234, "delivered %d with %d", detailed, queued_value);
    raise(SIGUSR2);
    kill(getpid(), SIGUSR2);
    CHECK(plain == 2, "the handler ran %d times", plain);
    raise(SIGHUP);
    raise(SIGWINCH);
    CHECK(on_stack, "the handler did not run on its stack");
    sigaltstack(NULL, &current);
    CHECK(current.ss_sp == stack && current.ss_size == sizeof stack, "alternate stack");
    sigaction(SIGUSR2, NULL, &got);
    CHECK(got.sa_handler == count && sigismember(&got.sa_mask, SIGUSR1) == 1, "sigaction of SIGUSR2");
    sigaction(SIGRTMIN + 3, NULL, &got);
    CHECK(got.sa_sigaction == details && (got.sa_flags & SA_SIGINFO), "sigaction of a real-time signal");
    raise(SIGURG);
    sigaction(SIGURG, NULL, &got);
    CHECK(plain == 3 && got.sa_handler == SIG_DFL, "a handler for once");
    sigaction(SIGTERM, NULL, &got);
    CHECK(got.sa_handler == SIG_DFL || got.sa_handler == SIG_IGN, "SIGTERM has a handler that is not ours");
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
