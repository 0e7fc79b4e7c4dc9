/* Timers whose signals wait to be taken: those that repeat go on, those that come once come once, each with all that it tells. So do
 * signals that wait for one thread alone.
 * trial: ranks=2 flags=-pthread */
#include "../common.h"
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static volatile int ticks, calls;
static volatile int handled_timer = -1;

static void tick(int number) {
    (void)number;
    ticks++;
}

static void with_timer(int number, siginfo_t *info, void *context) {
    (void)number, (void)context;
    handled_timer = info->si_timerid;
}

static void call(union sigval value) {
    if (value.sival_int == 33) __sync_fetch_and_add(&calls, 1);
}

static timer_t make_timer(int notify, int signal, int value, long after, long interval) {
    struct sigevent event = {.sigev_notify = notify, .sigev_signo = signal, .sigev_value = {.sival_int = value}};
    if (notify == SIGEV_THREAD_ID) event.sigev_notify_thread_id = (int)syscall(SYS_gettid);
    if (notify == SIGEV_THREAD) event.sigev_notify_function = call;
    timer_t timer = 0;
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0, "timer_create: %s", strerror(errno));
    struct itimerspec time = {{0, interval}, {0, after}};
    CHECK(timer_settime(timer, 0, &time, NULL) == 0, "timer_settime: %s", strerror(errno));
    return timer;
}

static void take(int signal, siginfo_t *info) {
    sigset_t set;
    struct timespec at_once = {0, 0};
    memset(info, 0, sizeof *info);
    sigemptyset(&set);
    sigaddset(&set, signal);
    int got = sigtimedwait(&set, info, &at_once);
    CHECK(got == signal, "signal %d instead of %d: %s", got, signal, got < 0 ? strerror(errno) : "");
}

static void expect_no_more(int signal) {
    sigset_t set;
    sigpending(&set);
    CHECK(!sigismember(&set, signal), "signal %d waits once more", signal);
}

static void *own_signals(void *argument) {
    siginfo_t info;
    timer_t timer = make_timer(SIGEV_THREAD_ID, SIGRTMIN + 4, 44, 1000, 0);
    union sigval value = {.sival_int = 55};
    pthread_sigqueue(pthread_self(), SIGRTMIN + 5, value);
    value.sival_int = 56;
    pthread_sigqueue(pthread_self(), SIGRTMIN + 5, value);
    __atomic_store_n((int *)argument, 1, __ATOMIC_RELEASE);
    while (!trial_go()) usleep(2000);
    take(SIGRTMIN + 4, &info);
    CHECK(info.si_code == SI_TIMER && info.si_value.sival_int == 44, "code %d, value %d", info.si_code, info.si_value.sival_int);
    for (int i = 55; i < 57; i++) {
        take(SIGRTMIN + 5, &info);
        CHECK(info.si_code == SI_QUEUE && info.si_value.sival_int == i, "code %d, value %d", info.si_code, info.si_value.sival_int);
        CHECK(info.si_pid == getpid(), "sent by %d", info.si_pid);
    }
    expect_no_more(SIGRTMIN + 4);
    expect_no_more(SIGRTMIN + 5);
    timer_delete(timer);
    return NULL;
}

int main(int argc, char **argv) {
    sigset_t set, waiting;
    siginfo_t info;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    sigaddset(&set, SIGUSR2);
    for (int i = 1; i < 6; i++) sigaddset(&set, SIGRTMIN + i);
    /* Before MPI starts threads of its own, which inherit the mask. */
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    trial_start_threads(&argc, &argv, MPI_THREAD_FUNNELED);
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct sigaction telling = {.sa_sigaction = with_timer, .sa_flags = SA_RESTART | SA_SIGINFO};
    sigaction(SIGRTMIN + 3, &telling, NULL);

    /* Ids that are not the first ones. */
    for (int i = 0; i < 3; i++) timer_delete(make_timer(SIGEV_SIGNAL, SIGUSR2, 0, 0, 0));
    struct itimerval often = {{0, 50000}, {0, 1000}}, left;
    setitimer(ITIMER_REAL, &often, NULL);
    timer_t once[2], repeating, later;
    for (int i = 0; i < 2; i++) once[i] = make_timer(SIGEV_SIGNAL, SIGUSR2, 7 + i, 1000, 0);
    repeating = make_timer(SIGEV_SIGNAL, SIGRTMIN + 2, 9, 1000, 30000000);
    later = make_timer(SIGEV_SIGNAL, SIGRTMIN + 3, 10, 0, 0);
    timer_t threaded = make_timer(SIGEV_THREAD, 0, 33, 1000000, 1000000);
    pthread_t thread;
    int sent = 0;
    pthread_create(&thread, NULL, own_signals, &sent);
    while (!__atomic_load_n(&sent, __ATOMIC_ACQUIRE)) usleep(100);
    do sigpending(&waiting);
    while (!sigismember(&waiting, SIGALRM) || !sigismember(&waiting, SIGRTMIN + 2) || !sigismember(&waiting, SIGUSR2));
    usleep(20000);
    trial_hold();

    unsigned seen = 0;
    for (int i = 0; i < 2; i++) {
        take(SIGUSR2, &info);
        int which = info.si_value.sival_int - 7;
        CHECK(info.si_code == SI_TIMER && which >= 0 && which < 2, "code %d, value %d", info.si_code, info.si_value.sival_int);
        if (which < 0 || which > 1) continue;
        seen |= 1u << which;
        CHECK(info.si_timerid == (int)(intptr_t)once[which], "timer %d for %d", info.si_timerid, (int)(intptr_t)once[which]);
    }
    CHECK(seen == 3, "expiries %x of the timers that come once", seen);
    usleep(20000);
    expect_no_more(SIGUSR2);
    take(SIGRTMIN + 2, &info);
    CHECK(info.si_timerid == (int)(intptr_t)repeating && info.si_value.sival_int == 9, "timer %d, value %d", info.si_timerid, info.si_value.sival_int);
    pthread_join(thread, NULL);

    /* A handler is told the timer's id too, by which the timer can be used. */
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGRTMIN + 3);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    struct itimerspec soon = {{0, 0}, {0, 1000}};
    CHECK(timer_settime(later, 0, &soon, NULL) == 0, "timer_settime: %s", strerror(errno));
    for (int i = 0; i < 1000 && handled_timer < 0; i++) usleep(1000);
    CHECK(handled_timer == (int)(intptr_t)later, "handler for timer %d instead of %d", handled_timer, (int)(intptr_t)later);

    /* What repeats goes on. */
    sigemptyset(&one);
    sigaddset(&one, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    int before = calls;
    for (int i = 0; i < 500 && (ticks < 3 || calls < before + 3); i++) usleep(10000);
    CHECK(ticks >= 3, "ITIMER_REAL ticked %d times", ticks);
    CHECK(calls >= before + 3, "SIGEV_THREAD called %d times", calls - before);
    getitimer(ITIMER_REAL, &left);
    CHECK(left.it_interval.tv_usec == 50000, "interval of %ld us", (long)left.it_interval.tv_usec);
    for (int i = 0; i < 100; i++) {
        sigpending(&waiting);
        if (sigismember(&waiting, SIGRTMIN + 2)) break;
        usleep(10000);
    }
    CHECK(sigismember(&waiting, SIGRTMIN + 2), "%s", "the timer that repeats has stopped");
    memset(&often, 0, sizeof often);
    setitimer(ITIMER_REAL, &often, NULL);
    timer_delete(threaded);
    timer_delete(repeating);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
