/* Processor time goes on after a restart where it was: on no clock does it go back.
 * trial: ranks=1,2 flags=-pthread */
#include "../common.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/times.h>
#include <sys/wait.h>

enum { CLOCK, PROCESS, THREAD, OTHER_THREAD, BY_ID, USED, USED_BY_THREAD, TIMES, CHILDREN, WAYS };
static const char *names[] = {"clock()", "CLOCK_PROCESS_CPUTIME_ID", "CLOCK_THREAD_CPUTIME_ID", "a thread's clock", "a process's clock", "getrusage", "getrusage of a thread", "times", "children"};
static const double WORK = 0.3, SLACK = 0.25;
static clockid_t of_thread, of_process;
static atomic_int worked, over;

static double seconds_of(clockid_t clock) {
    struct timespec now = {-1, 0};
    CHECK(clock_gettime(clock, &now) == 0, "clock %d: %s", (int)clock, strerror(errno));
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double sum(struct timeval one, struct timeval other) {
    return (double)(one.tv_sec + other.tv_sec) + 1e-6 * (double)(one.tv_usec + other.tv_usec);
}

static double used(int way) {
    struct rusage usage;
    struct tms ticks;
    switch (way) {
    case CLOCK: return (double)clock() / CLOCKS_PER_SEC;
    case PROCESS: return seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    case THREAD: return seconds_of(CLOCK_THREAD_CPUTIME_ID);
    case OTHER_THREAD: return seconds_of(of_thread);
    case BY_ID: return seconds_of(of_process);
    case USED: getrusage(RUSAGE_SELF, &usage); return sum(usage.ru_utime, usage.ru_stime);
    case USED_BY_THREAD: getrusage(RUSAGE_THREAD, &usage); return sum(usage.ru_utime, usage.ru_stime);
    case CHILDREN: getrusage(RUSAGE_CHILDREN, &usage); return sum(usage.ru_utime, usage.ru_stime);
    case TIMES: times(&ticks); return (double)(ticks.tms_utime + ticks.tms_stime) / (double)sysconf(_SC_CLK_TCK);
    }
    return -1;
}

/* Works until the calling thread has used so much. */
static void work(double seconds) {
    double end = seconds_of(CLOCK_THREAD_CPUTIME_ID) + seconds;
    volatile double value = 1;
    while (seconds_of(CLOCK_THREAD_CPUTIME_ID) < end)
        for (int i = 0; i < 1000; i++) value = value * 1.0000001;
}

static void *body(void *argument) {
    work(WORK);
    worked = 1;
    while (!over) usleep(2000);
    return argument;
}

int main(int argc, char **argv) {
    trial_start_threads(&argc, &argv, MPI_THREAD_FUNNELED);
    pthread_t thread;
    pthread_create(&thread, NULL, body, NULL);
    pthread_getcpuclockid(thread, &of_thread);
    clock_getcpuclockid(getpid(), &of_process);
    pid_t child = fork();
    if (child == 0) {
        work(WORK);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    work(WORK);
    while (!worked) usleep(1000);
    double before[WAYS];
    for (int way = 0; way < WAYS; way++) {
        before[way] = used(way);
        CHECK(before[way] >= 0.9 * WORK, "%s: %.2f s", names[way], before[way]);
    }
    trial_hold();
    for (int way = 0; way < WAYS; way++) {
        double now = used(way);
        CHECK(now >= before[way] - 0.02, "%s: %.2f s, and %.2f s before", names[way], now, before[way]);
        int alone = way == THREAD || way == OTHER_THREAD || way == USED_BY_THREAD || way == CHILDREN;
        CHECK(!alone || now < before[way] + SLACK, "%s: %.2f s, and %.2f s before", names[way], now, before[way]);
    }
    double again = used(PROCESS);
    work(0.05);
    CHECK(used(PROCESS) >= again + 0.05, "%s", "the process's clock stands");
    over = 1;
    pthread_join(thread, NULL);
    return trial_finish();
}
