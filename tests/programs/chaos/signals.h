/* Signals and timers. Each feature has signals of its own. */
#include "feature.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <ucontext.h>

static volatile sig_atomic_t came[65];
static volatile int came_value, came_code, came_pid;

static void note(int number, siginfo_t *info, void *context) {
    (void)context;
    came[number]++;
    if (number == SIGRTMIN + 6) {
        came_value = info->si_value.sival_int;
        came_code = info->si_code;
        came_pid = info->si_pid;
    }
}

static void handle(int number, int flags) {
    struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO | SA_RESTART | flags};
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGUSR2);
    DOES(sigaction(number, &action, NULL));
}

static void mask(int how, int number) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    pthread_sigmask(how, &set, NULL);
}

static int comes(int number) {
    for (int i = 0; i < 1000 && !came[number]; i++) usleep(10000);
    return came[number];
}

CARRIED(handler_of_a_signal)
SET(handler_of_a_signal) { handle(SIGRTMIN + 7, 0); }
AFTER(handler_of_a_signal) {
    struct sigaction action;
    DOES(sigaction(SIGRTMIN + 7, NULL, &action));
    CHECK(action.sa_sigaction == note && action.sa_flags & SA_RESTART && sigismember(&action.sa_mask, SIGUSR2), "flags %x", action.sa_flags);
    raise(SIGRTMIN + 7);
    CHECK(came[SIGRTMIN + 7] == 1, "%d", came[SIGRTMIN + 7]);
}

CARRIED(signals_that_wait_with_values)
SET(signals_that_wait_with_values) {
    handle(SIGRTMIN + 6, 0);
    mask(SIG_BLOCK, SIGRTMIN + 6);
    for (int i = 1; i <= 3; i++) {
        union sigval value = {.sival_int = 100 + i};
        CHECK(pthread_sigqueue(pthread_self(), SIGRTMIN + 6, value) == 0, "queue");
    }
}
AFTER(signals_that_wait_with_values) {
    mask(SIG_UNBLOCK, SIGRTMIN + 6);
    CHECK(came[SIGRTMIN + 6] == 3 && came_value == 103 && came_code == SI_QUEUE, "%d, %d, %d", came[SIGRTMIN + 6], came_value, came_code);
    CHECK(came_pid == getpid(), "sent by %d, this is %d", came_pid, getpid());
}

CARRIED(ignored_signal)
SET(ignored_signal) { signal(SIGTTOU, SIG_IGN); }
AFTER(ignored_signal) {
    struct sigaction action;
    DOES(sigaction(SIGTTOU, NULL, &action));
    CHECK(action.sa_handler == SIG_IGN, "it is not ignored");
    raise(SIGTTOU);
}

CARRIED(mask_of_the_main_thread)
SET(mask_of_the_main_thread) { mask(SIG_BLOCK, SIGRTMIN + 8); }
AFTER(mask_of_the_main_thread) {
    sigset_t set;
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    CHECK(sigismember(&set, SIGRTMIN + 8) == 1 && sigismember(&set, SIGRTMIN + 9) == 0, "mask");
}

static char other_stack[65536];
static volatile uintptr_t handler_stood_at;
static void on_other_stack(int number) {
    char here;
    (void)number;
    handler_stood_at = (uintptr_t)&here;
}
CARRIED(stack_for_signals)
SET(stack_for_signals) {
    stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
    DOES(sigaltstack(&stack, NULL));
    struct sigaction action = {.sa_handler = on_other_stack, .sa_flags = SA_ONSTACK};
    DOES(sigaction(SIGRTMIN + 10, &action, NULL));
}
AFTER(stack_for_signals) {
    raise(SIGRTMIN + 10);
    CHECK(handler_stood_at - (uintptr_t)other_stack < sizeof other_stack, "%p", (void *)handler_stood_at);
    stack_t stack;
    DOES(sigaltstack(NULL, &stack));
    CHECK(stack.ss_sp == other_stack && stack.ss_size == sizeof other_stack, "%p", stack.ss_sp);
}

CARRIED(periodic_real_timer)
SET(periodic_real_timer) {
    handle(SIGALRM, 0);
    struct itimerval every = {{0, 30000}, {0, 30000}};
    DOES(setitimer(ITIMER_REAL, &every, NULL));
}
AFTER(periodic_real_timer) {
    for (int round = 0; round < 3; round++) {
        came[SIGALRM] = 0;
        CHECK(comes(SIGALRM) > 0, "it has stopped");
    }
    struct itimerval off = {{0, 0}, {0, 0}}, was;
    DOES(setitimer(ITIMER_REAL, &off, &was));
    CHECK(was.it_interval.tv_usec == 30000, "%ld us", (long)was.it_interval.tv_usec);
}

CARRIED(periodic_processor_timer)
SET(periodic_processor_timer) {
    handle(SIGPROF, 0);
    struct itimerval every = {{0, 10000}, {0, 10000}};
    DOES(setitimer(ITIMER_PROF, &every, NULL));
}
AFTER(periodic_processor_timer) {
    came[SIGPROF] = 0;
    trial_compute(0.2);
    for (int i = 0; i < 20 && !came[SIGPROF]; i++) trial_compute(0.1);
    CHECK(came[SIGPROF] > 0, "it has stopped");
    struct itimerval off = {{0, 0}, {0, 0}};
    DOES(setitimer(ITIMER_PROF, &off, NULL));
}

static timer_t signal_timer;
CARRIED(timer_that_sends_a_signal)
SET(timer_that_sends_a_signal) {
    handle(SIGRTMIN + 11, 0);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 11};
    struct itimerspec every = {{0, 25000000}, {0, 25000000}};
    DOES(timer_create(CLOCK_MONOTONIC, &event, &signal_timer));
    DOES(timer_settime(signal_timer, 0, &every, NULL));
}
AFTER(timer_that_sends_a_signal) {
    for (int round = 0; round < 3; round++) {
        came[SIGRTMIN + 11] = 0;
        CHECK(comes(SIGRTMIN + 11) > 0, "it has stopped");
    }
    struct itimerspec left;
    DOES(timer_gettime(signal_timer, &left));
    CHECK(left.it_interval.tv_nsec == 25000000, "%ld ns", left.it_interval.tv_nsec);
    DOES(timer_delete(signal_timer));
}

static timer_t blocked_timer;
CARRIED(timer_whose_signal_waits)
SET(timer_whose_signal_waits) {
    handle(SIGRTMIN + 12, 0);
    mask(SIG_BLOCK, SIGRTMIN + 12);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 12};
    struct itimerspec every = {{0, 10000000}, {0, 10000000}};
    DOES(timer_create(CLOCK_MONOTONIC, &event, &blocked_timer));
    DOES(timer_settime(blocked_timer, 0, &every, NULL));
    usleep(40000);
}
AFTER(timer_whose_signal_waits) {
    mask(SIG_UNBLOCK, SIGRTMIN + 12);
    CHECK(comes(SIGRTMIN + 12) > 0, "what waited is gone");
    came[SIGRTMIN + 12] = 0;
    CHECK(comes(SIGRTMIN + 12) > 0, "it has stopped");
    DOES(timer_delete(blocked_timer));
}

static volatile int thread_ticks;
static timer_t thread_timer;
static void tick_in_a_thread(union sigval value) { __atomic_add_fetch(&thread_ticks, value.sival_int, __ATOMIC_RELAXED); }
CARRIED(timer_that_starts_threads)
SET(timer_that_starts_threads) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = tick_in_a_thread, .sigev_value.sival_int = 1};
    struct itimerspec every = {{0, 30000000}, {0, 30000000}};
    DOES(timer_create(CLOCK_MONOTONIC, &event, &thread_timer));
    DOES(timer_settime(thread_timer, 0, &every, NULL));
}
AFTER(timer_that_starts_threads) {
    for (int round = 0; round < 3; round++) {
        int before = thread_ticks;
        for (int i = 0; i < 1000 && thread_ticks == before; i++) usleep(10000);
        CHECK(thread_ticks > before, "it has stopped");
    }
    DOES(timer_delete(thread_timer));
}

static timer_t silent_timer;
CARRIED(timer_that_tells_nobody)
SET(timer_that_tells_nobody) {
    struct sigevent event = {.sigev_notify = SIGEV_NONE};
    struct itimerspec once = {{0, 0}, {1000, 0}};
    DOES(timer_create(CLOCK_REALTIME, &event, &silent_timer));
    DOES(timer_settime(silent_timer, 0, &once, NULL));
}
AFTER(timer_that_tells_nobody) {
    struct itimerspec left;
    DOES(timer_gettime(silent_timer, &left));
    CHECK(left.it_value.tv_sec > 800 && left.it_value.tv_sec <= 1000, "%ld s", (long)left.it_value.tv_sec);
}

static sigjmp_buf saved_jump;
static volatile int jumps;
CARRIED(place_to_jump_back_to)
SET(place_to_jump_back_to) { jumps = 0; }
AFTER(place_to_jump_back_to) {
    if (sigsetjmp(saved_jump, 1) == 0) {
        jumps = 1;
        siglongjmp(saved_jump, 7);
    }
    CHECK(jumps == 1, "%d", jumps);
}

static ucontext_t outside, coroutine;
static char coroutine_stack[65536];
static volatile int coroutine_steps;
static void run_coroutine(void) {
    for (;;) {
        coroutine_steps++;
        swapcontext(&coroutine, &outside);
    }
}
CARRIED(coroutine_that_is_suspended)
SET(coroutine_that_is_suspended) {
    getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = coroutine_stack;
    coroutine.uc_stack.ss_size = sizeof coroutine_stack;
    makecontext(&coroutine, run_coroutine, 0);
    swapcontext(&outside, &coroutine);
}
AFTER(coroutine_that_is_suspended) {
    swapcontext(&outside, &coroutine);
    CHECK(coroutine_steps == 2, "%d steps", coroutine_steps);
}
