/* What a fault's signal does that was sent, and that every thread of the program blocks: it waits until one takes it.
 * trial: ranks=1 */
#include "../same.h"
#include <signal.h>
#include <time.h>
#include <unistd.h>

static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};

static void sent(void) {
    struct timespec patience = {10, 0}, moment = {0, 200000000};
    sigset_t blocked, pending;
    sigemptyset(&blocked);
    for (int i = 0; i < 4; i++) sigaddset(&blocked, faults[i]);
    for (int i = 0; i < 4; i++) {
        union sigval value = {.sival_int = 1000 + i};
        siginfo_t info = {0};
        if (sigqueue(getpid(), faults[i], value)) perror("sigqueue");
        nanosleep(&moment, NULL);
        sigpending(&pending);
        say("pending", sigismember(&pending, faults[i]));
        say("taken", sigtimedwait(&blocked, &info, &patience));
        say("code", info.si_code);
        say("value", info.si_value.sival_int);
        say("own", info.si_pid == getpid());
    }
}

int main(int argc, char **argv) {
    sigset_t blocked;
    sigfillset(&blocked);
    sigprocmask(SIG_SETMASK, &blocked, NULL);
    sent();
    /* MPI's own threads inherit the mask, natively too. */
    begin(argc, argv);
    sent();
    MPI_Finalize();
    return 0;
}
