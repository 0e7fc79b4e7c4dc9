/* Handlers that take their time interrupt a thread that does nothing but read the clock, in the kernel's vDSO, which
 * every launch has at another place: some return there, some leave by a jump, some run on a stack of their own.
 * trial: ranks=2 */
#include "../moving.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

static char alternate[1 << 16];
static volatile int handled;
static sigjmp_buf back;

static void on_alarm(int signal) {
    (void)signal;
    handled++;
    usleep(1500);
    if (handled % 3 == 0) siglongjmp(back, 1);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    sigaltstack(&stack, NULL);
    struct sigaction action = {.sa_handler = on_alarm};
    struct itimerval soon = {{0, 0}, {0, 500}};
    for (volatile uint64_t round = 0; moving_agree(round, MPI_COMM_WORLD); round++) {
        action.sa_flags = round % 2 ? SA_ONSTACK : 0;
        sigaction(SIGALRM, &action, NULL);
        for (volatile int more = 4; more > 0; more--) {
            volatile int before = handled;
            if (sigsetjmp(back, 1) == 0) setitimer(ITIMER_REAL, &soon, NULL);
            double last = trial_seconds(), now;
            while (handled == before) {
                now = trial_seconds();
                CHECK(now >= last, "the clock went from %.9f to %.9f", last, now);
                last = now;
            }
        }
    }
    CHECK(handled >= 4 * LEAST_ROUNDS, "%d handled", handled);
    return trial_finish();
}
