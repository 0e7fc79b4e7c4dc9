/* Signals: handlers, masks, the old values that come back, one-shot, alternate stack, waiting, jumping out, restarts. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t count;
static volatile int on_alternate, value;
static char alternate[65536];
static sigjmp_buf back;

static void plain(int signal) { count += signal; errno = 12345; }
static void with_info(int signal, siginfo_t *info, void *context) {
    (void)context;
    char here;
    on_alternate = &here >= alternate && &here < alternate + sizeof alternate;
    value = info->si_value.sival_int;
    count += signal + (info->si_pid == getpid() ? 1000 : 0);
}
static void jump(int signal) { siglongjmp(back, signal); }
static void crash(int signal, siginfo_t *info, void *context) {
    (void)context; (void)signal;
    value = info->si_addr == (void *)16;
    siglongjmp(back, 1);
}

int main(void) {
    struct sigaction action, old;
    for (int i = 1; i < 65; i++) {
        if (i == 32 || i == 33 || i == 62 || i == 31) continue;
        if (sigaction(i, NULL, &old) == 0 && old.sa_handler != SIG_DFL) printf("%d is not at its default\n", i);
    }
    memset(&action, 0, sizeof action);
    action.sa_handler = plain;
    action.sa_flags = SA_RESTART;
    sigaddset(&action.sa_mask, SIGUSR2);
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR1, NULL, &old);
    printf("%d %d %d\n", old.sa_handler == plain, old.sa_flags & SA_RESTART ? 1 : 0, sigismember(&old.sa_mask, SIGUSR2));
    errno = 0;
    raise(SIGUSR1);
    printf("count %d\n", (int)count);

    action.sa_sigaction = with_info;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND;
    sigaction(SIGUSR2, &action, NULL);
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate}, before;
    sigaltstack(&stack, &before);
    printf("stack %d\n", before.ss_flags == SS_DISABLE);
    sigqueue(getpid(), SIGUSR2, (union sigval){.sival_int = 42});
    printf("count %d alternate %d value %d\n", (int)count, on_alternate, value);
    sigaction(SIGUSR2, NULL, &old);
    printf("reset %d\n", old.sa_handler == SIG_DFL);

    sigset_t set, was;
    sigfillset(&set);
    sigprocmask(SIG_SETMASK, &set, NULL);
    raise(SIGUSR1);
    sigprocmask(SIG_BLOCK, NULL, &was);
    printf("blocked %d pending count %d\n", sigismember(&was, SIGUSR1), (int)count);
    sigpending(&was);
    printf("pending %d\n", sigismember(&was, SIGUSR1));
    sigfillset(&set);
    sigdelset(&set, SIGUSR1);
    int result = sigsuspend(&set);
    printf("suspend %d %d count %d\n", result, errno == EINTR, (int)count);

    raise(SIGUSR1);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    siginfo_t info;
    printf("waited %d\n", sigwaitinfo(&set, &info));
    struct timespec moment = {0, 1000000};
    printf("timed %d\n", sigtimedwait(&set, &info, &moment) == -1 && errno == EAGAIN);
    int fd = signalfd(-1, &set, 0);
    raise(SIGUSR1);
    struct signalfd_siginfo from;
    ssize_t bytes = read(fd, &from, sizeof from);
    printf("signalfd %d %d\n", bytes == sizeof from, from.ssi_signo);
    close(fd);

    raise(SIGUSR1);
    sigfillset(&set);
    sigdelset(&set, SIGUSR1);
    printf("ppoll %d\n", ppoll(NULL, 0, NULL, &set) == -1 && errno == EINTR);
    raise(SIGUSR1);
    printf("pselect %d\n", pselect(0, NULL, NULL, NULL, NULL, &set) == -1 && errno == EINTR);
    sigemptyset(&set);
    sigprocmask(SIG_SETMASK, &set, NULL);

    signal(SIGALRM, jump);
    if (sigsetjmp(back, 1) == 0) { alarm(1); for (;;) pause(); }
    sigprocmask(SIG_SETMASK, NULL, &was);
    printf("jumped, blocked %d\n", sigismember(&was, SIGALRM));
    action.sa_sigaction = crash;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, NULL);
    if (sigsetjmp(back, 1) == 0) *(volatile int *)16 = 1;
    printf("crash %d\n", value);

    int pipes[2];
    pipe(pipes);
    struct itimerval timer = {{0, 20000}, {0, 20000}};
    action.sa_handler = plain;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
    if (fork() == 0) { usleep(200000); write(pipes[1], "x", 1); _exit(0); }
    char byte;
    printf("read %d\n", (int)read(pipes[0], &byte, 1));
    memset(&timer, 0, sizeof timer);
    setitimer(ITIMER_REAL, &timer, NULL);
    wait(NULL); /* The child has the pipe open too. */

    timer_t id;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 1};
    event.sigev_value.sival_int = 99;
    action.sa_sigaction = with_info;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGRTMIN + 1, &action, NULL);
    timer_create(CLOCK_MONOTONIC, &event, &id);
    struct itimerspec when = {{0, 0}, {0, 10000000}};
    value = 0;
    /* The timer may be faster than the wait for it. */
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN + 1);
    sigprocmask(SIG_BLOCK, &set, &was);
    timer_settime(id, 0, &when, NULL);
    while (value != 99) sigsuspend(&was);
    sigprocmask(SIG_SETMASK, &was, NULL);
    printf("timer %d\n", timer_delete(id));
    signal(SIGPIPE, SIG_DFL);
    close(pipes[0]);
    fflush(stdout);
    write(pipes[1], "x", 1);
    printf("not reached\n");
    return 0;
}
