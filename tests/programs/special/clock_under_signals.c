/* Does nothing but read the clock, in the kernel's vDSO, which every launch has at another place. The test sends signals
 * for a handler that returns at once.
 * trial: ranks=1 */
#include "../common.h"
#include <signal.h>

static volatile sig_atomic_t handled;

static void on_signal(int signal) {
    (void)signal;
    handled++;
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGUSR2, &action, NULL);
    trial_ready();
    while (!trial_go()) trial_compute(0.2);
    CHECK(handled > 0, "no signal came");
    return trial_finish();
}
