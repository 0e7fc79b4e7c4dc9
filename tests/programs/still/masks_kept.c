/* Masks that a handler has left behind through its context, all signals and none, are kept, thread by thread.
 * trial: ranks=2 */
#include "../common.h"
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>

#define EVERYTHING (~(1UL << (SIGKILL - 1) | 1UL << (SIGSTOP - 1)))

static void block_everything(int number, siginfo_t *info, void *context) {
    (void)number, (void)info;
    unsigned long all = ~0UL;
    memcpy(&((ucontext_t *)context)->uc_sigmask, &all, sizeof all);
}

/* As the kernel tells it: the C library keeps two signals for itself. */
static unsigned long mask(void) {
    unsigned long mask = 0;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, 8L);
    return mask;
}

static void *wait_with_all_blocked(void *unused) {
    pthread_kill(pthread_self(), SIGUSR1);
    CHECK(mask() == EVERYTHING, "mask %lx before", mask());
    while (!trial_go()) usleep(2000);
    CHECK(mask() == EVERYTHING, "mask %lx", mask());
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGSYS);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    CHECK(mask() == (EVERYTHING & ~(1UL << (SIGSYS - 1))), "mask %lx", mask());
    return unused;
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    pthread_t thread;
    struct sigaction action = {.sa_sigaction = block_everything, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    CHECK(pthread_create(&thread, NULL, wait_with_all_blocked, NULL) == 0, "pthread_create");
    trial_hold();
    CHECK(mask() == 0, "mask %lx", mask());
    pthread_join(thread, NULL);
    raise(SIGUSR1);
    CHECK(mask() == EVERYTHING, "mask %lx after a handler", mask());
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
