/* Stopped inside signal handlers - one on the stack, one on top of it on an alternate stack, masks and rounding mode
 * of its own in each - every handler returns to what it interrupted, and a jump out of one lands where it should.
 * trial: ranks=2 */
#include "../common.h"

#include <fenv.h>
#include <setjmp.h>
#include <signal.h>

static char alternate[1 << 16];
static volatile int outer_entered, inner_entered, order[4], steps;
static volatile double before_inner, after_inner;
static sigjmp_buf back;

static int blocked(int signal) {
    sigset_t mask;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    return sigismember(&mask, signal);
}

static void inner(int signal, siginfo_t *info, void *context) {
    (void)context;
    char here;
    inner_entered = 1;
    CHECK(&here >= alternate && &here < alternate + sizeof alternate, "%s", "not on the alternate stack");
    CHECK(info->si_value.sival_int == 4711, "value %d", info->si_value.sival_int);
    fesetround(FE_DOWNWARD);
    trial_hold();
    CHECK(fegetround() == FE_DOWNWARD, "rounding %d", fegetround());
    CHECK(blocked(signal) && blocked(SIGUSR1) && blocked(SIGHUP), "%s", "the masks of both handlers hold");
    order[steps++] = 1;
}

static void outer(int signal) {
    double x = 1.0 / 3.0 + trial_rank;
    outer_entered = 1;
    sigqueue(getpid(), SIGUSR2, (union sigval){.sival_int = 4711});
    CHECK(inner_entered, "%s", "the inner handler has not run");
    CHECK(x == 1.0 / 3.0 + trial_rank, "%s", "a local variable has changed");
    CHECK(blocked(signal) && !blocked(SIGUSR2), "%s", "the mask of the outer handler holds");
    order[steps++] = 2;
    siglongjmp(back, 77);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    sigaltstack(&stack, NULL);
    struct sigaction action = {0};
    action.sa_sigaction = inner;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaddset(&action.sa_mask, SIGHUP);
    sigaction(SIGUSR2, &action, NULL);
    action.sa_handler = outer;
    action.sa_flags = 0;
    sigaction(SIGUSR1, &action, NULL);
    fesetround(FE_UPWARD);
    int value = sigsetjmp(back, 1);
    if (value == 0) {
        raise(SIGUSR1);
        CHECK(0, "%s", "the outer handler has returned");
    }
    CHECK(value == 77, "value %d", value);
    CHECK(steps == 2 && order[0] == 1 && order[1] == 2, "%d steps", steps);
    CHECK(!blocked(SIGUSR1) && !blocked(SIGUSR2) && !blocked(SIGHUP), "%s", "nothing is blocked any more");
    stack_t now;
    sigaltstack(NULL, &now);
    CHECK(now.ss_sp == alternate && now.ss_flags == 0, "flags %d", now.ss_flags);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
