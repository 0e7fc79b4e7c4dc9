/* A thread can be named from the moment that its maker knows it: each call reaches that thread, and not the caller.
 * trial: ranks=1 flags=-pthread */
#include "../common.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>

enum { TIMES = 150 };

static volatile int signalled_tid, notified;
static pthread_barrier_t both;

static void signalled(int number) {
    (void)number;
    signalled_tid = gettid();
}

static void notify(union sigval value) {
    notified = value.sival_int;
}

struct told {
    int policy, processors, cpu, tid;
};

static void *named(void *argument) {
    struct told *told = argument;
    pthread_barrier_wait(&both); /* the maker has named it */
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    told->policy = sched_getscheduler(0);
    told->processors = CPU_COUNT(&set);
    for (told->cpu = 0; !CPU_ISSET(told->cpu, &set); told->cpu++) {}
    told->tid = gettid();
    return NULL;
}

static void *ends_at_once(void *argument) {
    return argument;
}

static void name_threads(int last_cpu) {
    cpu_set_t here, one;
    CPU_ZERO(&one);
    CPU_SET(last_cpu, &one);
    sched_getaffinity(0, sizeof here, &here);
    struct sched_param parameter = {0};
    int reached = 0, pinned = 0, batch = 0, clocks = 0, ours = 0;
    for (int i = 0; i < TIMES; i++) {
        pthread_t thread;
        struct told told = {0};
        clockid_t clock;
        struct timespec used;
        signalled_tid = 0;
        pthread_create(&thread, NULL, named, &told);
        CHECK(pthread_setschedparam(thread, SCHED_BATCH, &parameter) == 0, "%d", i);
        CHECK(pthread_setaffinity_np(thread, sizeof one, &one) == 0, "%d", i);
        CHECK(pthread_kill(thread, SIGUSR1) == 0, "%d", i);
        clocks += pthread_getcpuclockid(thread, &clock) == 0 && clock_gettime(clock, &used) == 0;
        pthread_barrier_wait(&both);
        pthread_join(thread, NULL);
        reached += signalled_tid == told.tid;
        pinned += told.processors == 1 && told.cpu == last_cpu;
        batch += told.policy == SCHED_BATCH;
        ours += signalled_tid == gettid();
    }
    CHECK(reached == TIMES, "%d of %d signals came to their thread, %d to the sender", reached, TIMES, ours);
    CHECK(pinned == TIMES, "%d of %d are pinned", pinned, TIMES);
    CHECK(batch == TIMES, "%d of %d have their policy", batch, TIMES);
    CHECK(clocks == TIMES, "%d of %d have a clock", clocks, TIMES);
    sched_getaffinity(0, sizeof one, &one);
    CHECK(CPU_EQUAL(&here, &one), "%s", "the maker is pinned");
    CHECK(sched_getscheduler(0) == SCHED_OTHER, "%s", "the maker has another policy");

    /* Pinned by an attribute: the C library pins it between clone and its first instruction. */
    pthread_attr_t attribute;
    pthread_attr_init(&attribute);
    CPU_ZERO(&one);
    CPU_SET(last_cpu, &one);
    pthread_attr_setaffinity_np(&attribute, sizeof one, &one);
    for (pinned = 0; pinned < TIMES; pinned++) {
        pthread_t thread;
        struct told told = {0};
        if (pthread_create(&thread, &attribute, named, &told)) break;
        pthread_barrier_wait(&both);
        pthread_join(thread, NULL);
        if (told.processors != 1 || told.cpu != last_cpu) break;
    }
    CHECK(pinned == TIMES, "%d of %d are pinned by an attribute", pinned, TIMES);
    sched_getaffinity(0, sizeof one, &one);
    CHECK(CPU_EQUAL(&here, &one), "%s", "the maker is pinned by a thread's attribute");
    pthread_attr_destroy(&attribute);

    int made = 0;
    for (int i = 0; i < TIMES; i++) { /* gone before its maker has looked */
        pthread_t thread;
        void *given = NULL;
        CHECK(pthread_create(&thread, NULL, ends_at_once, &made) == 0, "%d", i);
        pthread_join(thread, &given);
        CHECK(given == &made, "%d", i);
    }

    /* The C library makes a thread and names it to the kernel. */
    for (int i = 0; i < TIMES; i++) {
        struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_value.sival_int = i + 1, .sigev_notify_function = notify};
        struct itimerspec soon = {.it_value.tv_nsec = 1};
        timer_t timer;
        if (timer_create(CLOCK_MONOTONIC, &event, &timer)) continue;
        made++;
        if (i == TIMES - 1) {
            timer_settime(timer, 0, &soon, NULL);
            for (int waited = 0; notified != i + 1 && waited < 5000; waited++) usleep(1000);
            CHECK(notified == i + 1, "%d", notified);
        }
        timer_delete(timer);
    }
    CHECK(made == TIMES, "%d of %d timers made: %s", made, TIMES, strerror(errno));
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    pthread_barrier_init(&both, NULL, 2);
    signal(SIGUSR1, signalled);
    cpu_set_t here;
    sched_getaffinity(0, sizeof here, &here);
    int last = CPU_SETSIZE - 1;
    while (!CPU_ISSET(last, &here)) last--;
    name_threads(last);
    trial_hold();
    name_threads(last);
    return trial_finish();
}
