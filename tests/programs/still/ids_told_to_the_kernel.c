/* Ids of processes, groups and threads that the application has kept lead the kernel to the right ones, and come back from it
 * as the application knows them: in calls for scheduling, signals, clocks, memory and descriptors, and in paths.
 * trial: ranks=2 flags=-pthread */
#include "../common.h"
#include "../scheduling.h"

#include <linux/kcmp.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define CALL(number, ...) syscall(SYS_##number, __VA_ARGS__)
#define WORKS(call) CHECK((call) == 0, "%s", strerror(errno))

/* What the other thread sees of itself. */
static struct { int nice, policy, io; double seconds; } seen;
static pid_t other;
static volatile sig_atomic_t signals_of_other, wrong_sender;
static sem_t look, looked;
static volatile int end;

static void on_signal(int number, siginfo_t *info, void *context) {
    (void)number; (void)context;
    if (gettid() == other) signals_of_other++;
    if (info->si_code == SI_QUEUE && info->si_pid != getpid()) wrong_sender = 1;
}

static double seconds_of(clockid_t clock) {
    struct timespec time = {-1, 0};
    CHECK(clock_gettime(clock, &time) == 0, "clock %d: %s", clock, strerror(errno));
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void await(sem_t *semaphore) {
    while (sem_wait(semaphore)) CHECK(errno == EINTR, "%s", strerror(errno));
}

static void *look_at_itself(void *unused) {
    other = gettid();
    for (trial_compute(0.03); !end; await(&look)) {
        seen.nice = getpriority(PRIO_PROCESS, 0);
        seen.policy = sched_getscheduler(0);
        seen.io = (int)CALL(ioprio_get, IOPRIO_PROCESS, 0);
        seen.seconds = seconds_of(CLOCK_THREAD_CPUTIME_ID);
        sem_post(&looked);
    }
    return unused;
}

static void let_it_look(void) {
    sem_post(&look);
    await(&looked);
}

static void scheduling(void) {
    WORKS(setpriority(PRIO_PROCESS, (id_t)other, 17));
    CHECK(getpriority(PRIO_PROCESS, (id_t)other) == 17, "%d", getpriority(PRIO_PROCESS, (id_t)other));
    let_it_look();
    CHECK(seen.nice == 17, "the thread's nice value is %d", seen.nice);
    struct attributes set = {.size = sizeof set, .policy = SCHED_BATCH, .nice = 18}, got = {0};
    WORKS(CALL(sched_setattr, other, &set, 0));
    WORKS(CALL(sched_getattr, other, &got, sizeof got, 0));
    CHECK(got.policy == SCHED_BATCH && got.nice == 18, "policy %u, nice %d", got.policy, got.nice);
    let_it_look();
    CHECK(seen.nice == 18 && seen.policy == SCHED_BATCH, "nice %d, policy %d", seen.nice, seen.policy);
    struct sched_param none = {0};
    WORKS(sched_setscheduler(other, SCHED_OTHER, &none));
    CHECK(sched_getscheduler(other) == SCHED_OTHER, "%d", sched_getscheduler(other));
    WORKS(sched_setparam(other, &none));
    WORKS(sched_getparam(other, &none));
    struct timespec interval;
    WORKS(sched_rr_get_interval(other, &interval));
    WORKS(CALL(ioprio_set, IOPRIO_PROCESS, other, IOPRIO_BEST_EFFORT | 6));
    CHECK(CALL(ioprio_get, IOPRIO_PROCESS, other) == (IOPRIO_BEST_EFFORT | 6), "%ld", CALL(ioprio_get, IOPRIO_PROCESS, other));
    let_it_look();
    CHECK(seen.io == (IOPRIO_BEST_EFFORT | 6), "the thread's I/O priority is %d", seen.io);
    cpu_set_t set_of_processors;
    WORKS(sched_getaffinity(other, sizeof set_of_processors, &set_of_processors));
    WORKS(sched_setaffinity(other, sizeof set_of_processors, &set_of_processors));
    struct rlimit limit;
    WORKS(prlimit(getpid(), RLIMIT_CORE, NULL, &limit));
}

static void groups(pid_t me, int leads_group, int leads_session) {
    CHECK((getpgrp() == me) == leads_group, "group %d", getpgrp());
    CHECK(getpgid(me) == getpgrp() && getpgid(other) == getpgrp(), "groups %d and %d", getpgid(me), getpgid(other));
    CHECK((getsid(me) == me) == leads_session && getsid(me) == getsid(0), "session %d", getsid(me));
    CHECK(leads_session || setpgid(me, getpgrp()) == 0, "setpgid: %s", strerror(errno));
    WORKS(kill(-getpgrp(), 0));
    errno = 0;
    CHECK(getpriority(PRIO_PGRP, (id_t)getpgrp()) <= 19 && errno == 0, "%s", strerror(errno));
}

static void signals(pid_t me, pthread_t thread) {
    union sigval value = {.sival_int = 7};
    WORKS(sigqueue(me, SIGUSR1, value));
    CHECK(!wrong_sender, "%s", "a queued signal's sender is somebody else");
    int before = signals_of_other;
    WORKS(CALL(tkill, other, SIGUSR1));
    WORKS(CALL(tgkill, me, other, SIGUSR1));
    CHECK(pthread_sigqueue(thread, SIGUSR1, value) == 0, "%s", "pthread_sigqueue");
    let_it_look();
    CHECK(signals_of_other > before, "%s", "no signal has come to the thread");
    int process = (int)CALL(pidfd_open, me, 0);
    CHECK(process >= 0 && CALL(pidfd_send_signal, process, 0, NULL, 0) == 0, "pidfd: %s", strerror(errno));
    close(process);
}

static void owners(pid_t me) {
    int ends[2];
    WORKS(pipe(ends));
    WORKS(fcntl(ends[0], F_SETOWN, me));
    CHECK(fcntl(ends[0], F_GETOWN) == me, "owner %d", fcntl(ends[0], F_GETOWN));
    CHECK(CALL(fcntl, ends[0], F_GETOWN) == me, "owner %ld", CALL(fcntl, ends[0], F_GETOWN));
    WORKS(fcntl(ends[0], F_SETOWN, -getpgrp()));
    CHECK(fcntl(ends[0], F_GETOWN) == -getpgrp(), "owner %d", fcntl(ends[0], F_GETOWN));
    struct f_owner_ex owner = {F_OWNER_TID, other}, got = {0, 0};
    WORKS(fcntl(ends[0], F_SETOWN_EX, &owner));
    WORKS(fcntl(ends[0], F_GETOWN_EX, &got));
    CHECK(got.type == F_OWNER_TID && got.pid == other, "type %d, owner %d", got.type, got.pid);
    CHECK(fcntl(ends[0], F_SETOWN_EX, (void *)8) == -1 && errno == EFAULT, "%s", strerror(errno));
    int before = signals_of_other;
    WORKS(fcntl(ends[0], F_SETSIG, SIGUSR1));
    WORKS(fcntl(ends[0], F_SETFL, O_ASYNC));
    CHECK(write(ends[1], "x", 1) == 1, "%s", strerror(errno));
    let_it_look();
    CHECK(signals_of_other > before, "%s", "no signal has come to the pipe's owner");
    close(ends[0]);
    close(ends[1]);
}

static void clocks(pid_t me, clockid_t of_thread, clockid_t of_process, timer_t timer) {
    clockid_t now_of_process;
    CHECK(clock_getcpuclockid(me, &now_of_process) == 0 && now_of_process == of_process, "clock %d, was %d", now_of_process, of_process);
    struct timespec resolution;
    WORKS(clock_getres(of_thread, &resolution));
    let_it_look();
    double least = seen.seconds, from_here = seconds_of(of_thread);
    let_it_look();
    CHECK(least <= from_here && from_here <= seen.seconds, "%g is not between %g and %g", from_here, least, seen.seconds);
    least = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    double by_id = seconds_of(of_process);
    CHECK(least <= by_id && by_id <= seconds_of(CLOCK_PROCESS_CPUTIME_ID), "%g is before %g, or too late", by_id, least);
    struct itimerspec left = {{0, 0}, {0, 0}};
    WORKS(timer_gettime(timer, &left));
    CHECK(left.it_value.tv_sec > 900, "%ld seconds are left", (long)left.it_value.tv_sec);
    struct sigevent quietly = {.sigev_notify = SIGEV_NONE};
    timer_t another;
    WORKS(timer_create(of_process, &quietly, &another));
    WORKS(timer_delete(another));
}

static void memory(pid_t me) {
    char from[8] = "readable", to[8] = "";
    struct iovec source = {from, 8}, target = {to, 8};
    CHECK(process_vm_readv(me, &target, 1, &source, 1, 0) == 8 && !memcmp(from, to, 8), "%s", strerror(errno));
    memcpy(from, "writable", 8);
    CHECK(process_vm_writev(me, &source, 1, &target, 1, 0) == 8 && !memcmp(from, to, 8), "%s", strerror(errno));
    void *list;
    size_t bytes;
    WORKS(CALL(get_robust_list, other, &list, &bytes));
    CHECK(CALL(kcmp, me, other, KCMP_VM, 0, 0) == 0 || errno == ENOSYS, "kcmp: %s", strerror(errno));
    CHECK(CALL(move_pages, me, 0, NULL, NULL, NULL, 0) == 0 || errno == ENOSYS, "move_pages: %s", strerror(errno));
    struct perf_event_attr event = {.type = PERF_TYPE_SOFTWARE, .size = sizeof event, .config = PERF_COUNT_SW_TASK_CLOCK};
    int counter = (int)CALL(perf_event_open, &event, other, -1, -1, 0);
    CHECK(counter >= 0 || errno != ESRCH, "perf_event_open: %s", strerror(errno));
    if (counter >= 0) close(counter);
}

static void paths(pid_t me, pthread_t thread) {
    char path[64], by_id[PATH_MAX] = "", self[PATH_MAX] = "", name[16] = "";
    snprintf(path, sizeof path, "/proc/%d/cwd", me);
    CHECK(readlink(path, by_id, sizeof by_id - 1) > 0 && readlink("/proc/self/cwd", self, sizeof self - 1) > 0, "%s: %s", path, strerror(errno));
    CHECK(strcmp(by_id, self) == 0, "%s leads to %s, not to %s", path, by_id, self);
    CHECK(pthread_setname_np(thread, "other") == 0, "pthread_setname_np: %s", strerror(errno));
    CHECK(pthread_getname_np(thread, name, sizeof name) == 0 && strcmp(name, "other") == 0, "pthread_getname_np: '%s'", name);
    memset(name, 0, sizeof name);
    snprintf(path, sizeof path, "/proc/%d/task/%d/comm", me, other);
    FILE *file = fopen(path, "r");
    CHECK(file && fgets(name, sizeof name, file) && strcmp(name, "other\n") == 0, "%s: '%s'", path, name);
    if (file) fclose(file);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    pid_t me = getpid();
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    sem_init(&look, 0, 0);
    sem_init(&looked, 0, 0);
    pthread_t thread;
    pthread_create(&thread, NULL, look_at_itself, NULL);
    await(&looked);
    int leads_group = getpgrp() == me, leads_session = getsid(0) == me;
    clockid_t of_thread, of_process;
    CHECK(pthread_getcpuclockid(thread, &of_thread) == 0, "%s", "the thread's clock");
    CHECK(clock_getcpuclockid(me, &of_process) == 0, "%s", "the process's clock");
    struct sigevent quietly = {.sigev_notify = SIGEV_NONE};
    struct itimerspec later = {{0, 0}, {1000, 0}};
    timer_t timer;
    WORKS(timer_create(of_thread, &quietly, &timer));
    WORKS(timer_settime(timer, 0, &later, NULL));
    trial_hold();
    scheduling();
    groups(me, leads_group, leads_session);
    signals(me, thread);
    owners(me);
    clocks(me, of_thread, of_process, timer);
    memory(me);
    paths(me, thread);
    end = 1;
    sem_post(&look);
    pthread_join(thread, NULL);
    return trial_finish();
}
