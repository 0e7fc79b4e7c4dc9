/* Threads that make system calls of every kind without a pause are stopped anywhere before, in and behind one: each call answers as it
 * would have, in this launch and in the next.
 * trial: ranks=2 flags=-pthread */
#include "../common.h"
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

#define WORKS(call) CHECK((call) >= 0, "%s", strerror(errno))
#define SHORT (&(struct timespec){0, 20000})

static volatile int end;
static pid_t me, group, session;
static __thread volatile int handled;

static void on_signal(int number, siginfo_t *info, void *context) {
    (void)number, (void)context;
    CHECK(info->si_pid == me, "a signal of %d", info->si_pid);
    handled++;
}

static void memory(void) {
    size_t bytes = 3 * 4096;
    char *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(map != MAP_FAILED, "%s", strerror(errno));
    memset(map, 7, bytes);
    WORKS(mprotect(map, 4096, PROT_READ));
    WORKS(mprotect(map, 4096, PROT_READ | PROT_WRITE));
    map = mremap(map, bytes, 100 * bytes, MREMAP_MAYMOVE);
    CHECK(map != MAP_FAILED && map[0] == 7 && map[bytes - 1] == 7 && map[bytes] == 0, "%p", (void *)map);
    WORKS(munmap(map, 100 * bytes));
}

static void descriptors(void) {
    sigset_t none;
    sigemptyset(&none);
    int pair[2], made[] = {eventfd(0, 0), epoll_create1(0), signalfd(-1, &none, 0), timerfd_create(CLOCK_MONOTONIC, 0), inotify_init1(0),
                           memfd_create("memory", 0), open("/dev/zero", O_RDONLY), openat(AT_FDCWD, "/proc/self/exe", O_RDONLY)};
    WORKS(pipe(pair));
    WORKS(write(pair[1], "x", 1));
    struct epoll_event event = {.events = EPOLLIN}, got;
    WORKS(epoll_ctl(made[1], EPOLL_CTL_ADD, pair[0], &event));
    CHECK(epoll_wait(made[1], &got, 1, 1000) == 1, "%s", strerror(errno));
    int second = dup2(pair[0], made[0]);
    CHECK(second == made[0], "%d", second);
    char letter = 0;
    CHECK(read(second, &letter, 1) == 1 && letter == 'x', "'%c' %s", letter, strerror(errno));
    for (int i = 0; i < 8; i++) {
        struct stat about;
        CHECK(made[i] >= 0 && fstat(made[i], &about) == 0, "descriptor %d: %s", i, strerror(errno));
        WORKS(close(made[i]));
    }
    WORKS(close(pair[0]));
    WORKS(close(pair[1]));
}

static void signals(void) {
    sigset_t one, before;
    siginfo_t info;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR2);
    int seen = handled;
    syscall(SYS_tgkill, me, gettid(), SIGUSR2);
    CHECK(handled == seen + 1, "handled %d times", handled - seen);
    pthread_sigmask(SIG_BLOCK, &one, &before);
    syscall(SYS_tgkill, me, gettid(), SIGUSR2);
    int got = sigtimedwait(&one, &info, &(struct timespec){5, 0});
    CHECK(got == SIGUSR2 && info.si_pid == me && handled == seen + 1, "signal %d of %d", got, info.si_pid);
    syscall(SYS_tgkill, me, gettid(), SIGUSR2);
    CHECK(sigsuspend(&before) == -1 && errno == EINTR && handled == seen + 2, "handled %d times", handled - seen);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void waits(void) {
    int word = 0;
    fd_set none;
    sigset_t mask;
    FD_ZERO(&none);
    sigemptyset(&mask);
    WORKS(nanosleep(SHORT, NULL));
    CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, SHORT, NULL) == 0, "%s", "clock_nanosleep");
    CHECK(poll(NULL, 0, 1) == 0, "%s", strerror(errno));
    CHECK(ppoll(NULL, 0, SHORT, &mask) == 0, "%s", strerror(errno));
    CHECK(pselect(0, &none, NULL, NULL, SHORT, &mask) == 0, "%s", strerror(errno));
    CHECK(syscall(SYS_futex, &word, 128, 0, SHORT, NULL, 0) == -1 && errno == ETIMEDOUT, "%s", strerror(errno));
    CHECK(syscall(SYS_futex, &word, 128, 1, SHORT, NULL, 0) == -1 && errno == EAGAIN, "%s", strerror(errno));
}

static void *nothing(void *argument) { return argument; }

static void names(void) {
    cpu_set_t processors;
    char path[PATH_MAX], text[16];
    struct stat about;
    pthread_t thread;
    void *got = NULL;
    /* (A leader outside of the process's pid namespace has no number in it: 0.) */
    CHECK(getpid() == me && getpgid(0) == group && getsid(0) == session, "process %d of %d in %d", getpid(), getpgid(0), getsid(0));
    WORKS(sched_getaffinity(gettid(), sizeof processors, &processors));
    errno = 0;
    CHECK(getpriority(PRIO_PROCESS, (id_t)gettid()) != -1 || !errno, "%s", strerror(errno));
    WORKS(kill(me, 0));
    snprintf(path, sizeof path, "/proc/%d/task/%d/comm", me, gettid());
    WORKS(stat(path, &about));
    WORKS(readlink("/proc/self/exe", path, sizeof path));
    WORKS(prctl(PR_SET_NAME, "all the time"));
    WORKS(prctl(PR_GET_NAME, text));
    CHECK(strcmp(text, "all the time") == 0, "'%s'", text);
    CHECK(pthread_create(&thread, NULL, nothing, path) == 0, "%s", "pthread_create");
    CHECK(pthread_join(thread, &got) == 0 && got == path, "%s", "pthread_join");
}

static void timers(void) {
    struct sigevent event = {.sigev_notify = SIGEV_NONE};
    struct itimerspec time = {{0, 0}, {100, 0}}, left;
    timer_t timer;
    WORKS(timer_create(CLOCK_MONOTONIC, &event, &timer));
    WORKS(timer_settime(timer, 0, &time, NULL));
    WORKS(timer_gettime(timer, &left));
    CHECK(left.it_value.tv_sec >= 99, "%ld s are left", (long)left.it_value.tv_sec);
    WORKS(timer_delete(timer));
    int set = semget(IPC_PRIVATE, 1, 0600);
    WORKS(set);
    WORKS(semop(set, &(struct sembuf){0, 2, 0}, 1));
    WORKS(semop(set, &(struct sembuf){0, -1, 0}, 1));
    CHECK(semctl(set, 0, GETVAL) == 1, "%s", strerror(errno));
    WORKS(semctl(set, 0, IPC_RMID));
}

static void (*const KINDS[])(void) = {memory, descriptors, signals, waits, names, timers};
enum { MANY = sizeof KINDS / sizeof *KINDS };
static volatile long turns[MANY];

static void *again_and_again(void *which) {
    for (long kind = (long)which; !end; turns[kind]++) KINDS[kind]();
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[MANY];
    me = getpid(), group = getpgid(0), session = getsid(0);
    trial_start_threads(&argc, &argv, MPI_THREAD_FUNNELED);
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR2, &action, NULL);
    for (long i = 0; i < MANY; i++) pthread_create(&threads[i], NULL, again_and_again, (void *)i);
    usleep(20000);
    trial_hold();
    for (int i = 0; i < MANY; i++)
        for (long before = turns[i]; turns[i] < before + 5 && !trial_failures;) usleep(1000);
    int sum = 0, one = 1;
    MUST(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == trial_size, "a sum of %d", sum);
    end = 1;
    for (int i = 0; i < MANY; i++) pthread_join(threads[i], NULL);
    return trial_finish();
}
