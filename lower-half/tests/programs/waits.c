/* A signal that comes while a thread waits ends the wait, as signal(7) says, whenever it comes: calls that every handler
 * ends, calls that one without SA_RESTART ends, and calls that a mask keeps it from. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define MILLISECOND 1000
/* Long enough for the wait to have begun, even where the machine is busy. */
#define SOON (100 * MILLISECOND)
#define ROUNDS 3

static volatile sig_atomic_t alarms;
static int empty[2], set;
static sem_t never;

static void on_alarm(int signal) { (void)signal, alarms++; }

/* One alarm, soon. */
static void arm(void) {
    struct itimerval once = {{0, 0}, {0, SOON}};
    setitimer(ITIMER_REAL, &once, NULL);
}

static int by_pause(void) { return pause(); }
static int by_suspend(void) { sigset_t none; sigemptyset(&none); return sigsuspend(&none); }
static int by_sleep(void) { struct timespec long_time = {50, 0}; return nanosleep(&long_time, &long_time); }
static int by_sleep_alone(void) { struct timespec long_time = {50, 0}; return nanosleep(&long_time, NULL); }
static int by_poll(void) { return poll(NULL, 0, 50000); }
static int by_select(void) { struct timeval long_time = {50, 0}; return select(0, NULL, NULL, NULL, &long_time); }
static int by_epoll(void) { struct epoll_event event; return epoll_wait(set, &event, 1, 50000); }
static int by_ppoll(void) { sigset_t none; sigemptyset(&none); return ppoll(NULL, 0, NULL, &none); }
static int by_pselect(void) { sigset_t none; sigemptyset(&none); return pselect(0, NULL, NULL, NULL, NULL, &none); }
static int by_epoll_pwait(void) { sigset_t none; struct epoll_event event; sigemptyset(&none); return epoll_pwait(set, &event, 1, -1, &none); }
static int by_wait_for_signal(void) { sigset_t some; sigemptyset(&some); sigaddset(&some, SIGUSR2); return sigwaitinfo(&some, NULL); }
static int by_read(void) { char byte; return (int)read(empty[0], &byte, 1); }
static int by_semaphore(void) { return sem_wait(&never); }

struct way { const char *name; int (*wait)(void); };
static const struct way always[] = {
    {"pause", by_pause}, {"sigsuspend", by_suspend}, {"nanosleep", by_sleep}, {"nanosleep alone", by_sleep_alone}, {"poll", by_poll},
    {"select", by_select}, {"epoll_wait", by_epoll}, {"ppoll", by_ppoll}, {"pselect", by_pselect}, {"epoll_pwait", by_epoll_pwait},
    {"sigwaitinfo", by_wait_for_signal},
};
static const struct way unless_restarted[] = {{"read", by_read}, {"sem_wait", by_semaphore}};

static void run(const struct way *way, int flags) {
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = flags};
    sigaction(SIGALRM, &action, NULL);
    for (int round = 0; round < ROUNDS; round++) {
        int before = alarms;
        arm();
        errno = 0;
        int result = way->wait();
        int error = errno;
        printf("%s%s: %d %s, %d alarm\n", way->name, flags ? ", restarting" : "", result, strerrorname_np(error), alarms - before);
        fflush(stdout);
    }
}

/* The mask keeps the alarm away until the wait is over. */
static void masked(void) {
    sigset_t all;
    struct timespec while_longer = {0, 3L * SOON * 1000};
    sigfillset(&all);
    int before = alarms;
    arm();
    int result = ppoll(NULL, 0, &while_longer, &all);
    printf("masked: %d, %d alarm\n", result, alarms - before);
}

int main(void) {
    if (pipe(empty) != 0 || (set = epoll_create1(0)) < 0) abort();
    sem_init(&never, 0, 0);
    for (size_t i = 0; i < sizeof always / sizeof *always; i++) {
        run(&always[i], 0);
        run(&always[i], SA_RESTART);
    }
    for (size_t i = 0; i < sizeof unless_restarted / sizeof *unless_restarted; i++) run(&unless_restarted[i], 0);
    masked();
    return 0;
}
