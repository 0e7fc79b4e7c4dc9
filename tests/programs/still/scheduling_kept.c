/* What each thread has chosen of its scheduling - nice value, policy, processors, timer slack, I/O priority - and its name are
 * its own again; a thread that has chosen nothing has what its process was launched with.
 * trial: ranks=2 flags=-pthread */
#include "../common.h"
#include "../scheduling.h"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* What a thread can read of itself. */
struct seen {
    int nice, io;
    long slack;
    struct attributes attributes;
    cpu_set_t processors;
    char name[17];
};

static struct seen look(void) {
    struct seen seen;
    memset(&seen, 0, sizeof seen);
    errno = 0;
    seen.nice = getpriority(PRIO_PROCESS, 0);
    CHECK(errno == 0, "getpriority: %s", strerror(errno));
    seen.io = (int)syscall(SYS_ioprio_get, IOPRIO_PROCESS, 0);
    seen.slack = prctl(PR_GET_TIMERSLACK);
    CHECK(syscall(SYS_sched_getattr, 0, &seen.attributes, sizeof seen.attributes, 0) == 0, "sched_getattr: %s", strerror(errno));
    CHECK(sched_getaffinity(0, sizeof seen.processors, &seen.processors) == 0, "sched_getaffinity: %s", strerror(errno));
    prctl(PR_GET_NAME, seen.name);
    return seen;
}

static void same(const char *who, struct seen now, struct seen then) {
    CHECK(now.nice == then.nice, "%s: nice value %d, was %d", who, now.nice, then.nice);
    CHECK(now.io == then.io, "%s: I/O priority %x, was %x", who, now.io, then.io);
    CHECK(now.slack == then.slack, "%s: timer slack %ld, was %ld", who, now.slack, then.slack);
    CHECK(now.attributes.policy == then.attributes.policy, "%s: policy %u, was %u", who, now.attributes.policy, then.attributes.policy);
    CHECK(memcmp(&now.attributes, &then.attributes, sizeof now.attributes) == 0, "%s: scheduling attributes", who);
    CHECK(CPU_EQUAL(&now.processors, &then.processors), "%s: %d processors, were %d", who, CPU_COUNT(&now.processors), CPU_COUNT(&then.processors));
    CHECK(strcmp(now.name, then.name) == 0, "%s: called '%s', was '%s'", who, now.name, then.name);
}

static void chosen(int result, const char *what) {
    CHECK(result == 0, "%s: %s", what, strerror(errno));
}

/* What only some may choose. */
static void chosen_if_allowed(int result, const char *what) {
    CHECK(result == 0 || errno == EPERM || errno == EBUSY, "%s: %s", what, strerror(errno));
}

static void nothing(void) {}

static void nicer(void) {
    chosen(setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + 5), "nice value");
    struct sched_param none = {0};
    chosen(sched_setscheduler(0, SCHED_BATCH | SCHED_RESET_ON_FORK, &none), "SCHED_BATCH");
    chosen(prctl(PR_SET_NAME, "a/thread \xff"), "name");
}

static void idler(void) {
    struct sched_param none = {0};
    chosen(sched_setscheduler(0, SCHED_IDLE, &none), "SCHED_IDLE");
    chosen(prctl(PR_SET_TIMERSLACK, 123456L), "timer slack");
    chosen((int)syscall(SYS_ioprio_set, IOPRIO_PROCESS, 0, IOPRIO_BEST_EFFORT | 7), "I/O priority");
}

/* The last processor of those that the machine lets it have. */
static void bound(void) {
    cpu_set_t all, last;
    memset(&all, 0xff, sizeof all);
    chosen(sched_setaffinity(0, sizeof all, &all), "all processors");
    chosen(sched_getaffinity(0, sizeof all, &all), "which processors");
    for (int processor = 0; processor < CPU_SETSIZE; processor++)
        if (CPU_ISSET(processor, &all)) {
            CPU_ZERO(&last);
            CPU_SET(processor, &last);
        }
    chosen(sched_setaffinity(0, sizeof last, &last), "the last processor");
}

static void in_time(void) {
    struct sched_param priority = {.sched_priority = 3};
    chosen_if_allowed(sched_setscheduler(0, SCHED_RR, &priority), "SCHED_RR");
}

static void before_deadlines(void) {
    struct attributes attributes = {.size = sizeof attributes, .policy = 6, .runtime = 1000000, .deadline = 20000000, .period = 20000000};
    chosen_if_allowed((int)syscall(SYS_sched_setattr, 0, &attributes, 0), "SCHED_DEADLINE");
}

static struct kind {
    const char *who;
    void (*choose)(void);
    struct seen then;
    volatile int ready;
} kinds[] = {
    {.who = "a thread that chooses nothing", .choose = nothing},
    {.who = "a nicer thread", .choose = nicer},
    {.who = "an idler", .choose = idler},
    {.who = "a bound thread", .choose = bound},
    {.who = "a real-time thread", .choose = in_time},
    {.who = "a thread with deadlines", .choose = before_deadlines},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void *run(void *argument) {
    struct kind *kind = argument;
    kind->choose();
    kind->then = look();
    kind->ready = 1;
    trial_wait();
    same(kind->who, look(), kind->then);
    return NULL;
}

static void *inherit(void *of_maker) {
    struct seen now = look(), *maker = of_maker;
    CHECK(now.nice == maker->nice && now.slack == maker->slack, "a new thread: nice value %d, timer slack %ld", now.nice, now.slack);
    return NULL;
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    pthread_t threads[KINDS], heir;
    for (int i = 0; i < KINDS; i++) pthread_create(&threads[i], NULL, run, &kinds[i]);
    for (int i = 0; i < KINDS; i++)
        while (!kinds[i].ready) usleep(100);
    chosen(setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + 1), "nice value");
    chosen(prctl(PR_SET_TIMERSLACK, 70000L), "timer slack");
    chosen(prctl(PR_SET_NAME, "main/\xfe thread"), "name");
    struct seen then = look();
    trial_hold();
    same("the main thread", look(), then);
    pthread_create(&heir, NULL, inherit, &then);
    pthread_join(heir, NULL);
    for (int i = 0; i < KINDS; i++) pthread_join(threads[i], NULL);
    return trial_finish();
}
