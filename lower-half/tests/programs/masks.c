/* Signal masks read back as they were set, in handlers, after them, in threads and in children; SIGSYS is no exception. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static unsigned long in_handler, seen_before;
static int change;

/* The kernel's mask, as the program is told it. */
static unsigned long mask(void) {
    unsigned long mask = 0;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, 8L);
    return mask;
}

static void set(unsigned long mask) { syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, 8L); }

/* Calls that cannot do without SIGSYS under a gate. */
static void live(void) {
    void *room = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED || munmap(room, 4096) != 0 || close(dup(1)) != 0) abort();
    getpid();
}

static void tell(const char *what) {
    live();
    printf("%s: mask %016lx, in the handler %016lx, before it %016lx\n", what, mask(), in_handler, seen_before);
    fflush(stdout);
}

static void handler(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    sigset_t *after = &((ucontext_t *)context)->uc_sigmask;
    memcpy(&seen_before, after, 8);
    in_handler = mask();
    live();
    if (change == 1) sigfillset(after);
    if (change == 2) sigemptyset(after);
    if (change == 3) sigaddset(after, SIGSYS);
}

static sigjmp_buf back;
static void jump(int signal) { (void)signal, siglongjmp(back, 1); }

static void *thread(void *unused) {
    tell("a thread");
    raise(SIGUSR1);
    tell("a thread after a handler");
    return unused;
}

int main(int count, char **arguments) {
    if (count > 1) {
        tell(arguments[1]);
        return 0;
    }
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    tell("first");
    for (change = 0; change < 4; change++) {
        set(0);
        raise(SIGUSR1);
        tell("after a handler");
    }
    change = 0;
    set(0);
    sigfillset(&action.sa_mask);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    tell("blocks all meanwhile");
    set(~0UL & ~(1UL << (SIGUSR1 - 1)));
    tell("all but one");
    raise(SIGUSR1);
    tell("all but one, after a handler");
    signal(SIGUSR2, jump);
    set(~0UL & ~(1UL << (SIGUSR2 - 1)));
    if (sigsetjmp(back, 1) == 0) raise(SIGUSR2);
    tell("after a jump");
    set(~0UL & ~(1UL << (SIGUSR1 - 1)));
    pthread_t other;
    pthread_create(&other, NULL, thread, NULL);
    pthread_join(other, NULL);
    int status;
    pid_t child = fork();
    if (child == 0) {
        tell("a child");
        execl("/proc/self/exe", "masks", "another program", NULL);
    }
    waitpid(child, &status, 0);
    sigset_t some;
    sigemptyset(&some);
    sigaddset(&some, SIGSYS);
    sigprocmask(SIG_UNBLOCK, &some, NULL);
    tell("unblocked");
    sigprocmask(SIG_BLOCK, &some, NULL);
    tell("blocked");
    set(0);
    tell("none");
    return 0;
}
