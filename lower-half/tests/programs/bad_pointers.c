/* Bad pointers: every call gives the error that the kernel gives, and what ends at the last byte of a page is no bad one. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define COUNT(list) (sizeof(list) / sizeof *(list))

/* Bytes that the kernel's structures have. */
#define MASK 8L
#define ACTION 32L

/* A page that can be used, between two that cannot. */
static char *page;
static char *read_only;

/* Room of this many bytes at the page's end. */
static void *at_end(size_t bytes) { return memset(page + PAGE - bytes, 0, bytes); }

static void tell(const char *what, long result) {
    printf("%s: %s\n", what, result == -1 ? strerrorname_np(errno) : "done");
    fflush(stdout);
}
#define TELL(what, ...) \
    do { \
        printf("%2zu ", i); \
        tell(what, syscall(__VA_ARGS__)); \
    } while (0)

static void masks(void *bad, size_t i) {
    struct { void *mask; size_t bytes; } behind = {bad, MASK}, short_one = {at_end(MASK), 4};
    struct timespec now = {0, 0};
    struct epoll_event event;
    int set = epoll_create1(0);
    TELL("sigprocmask new", SYS_rt_sigprocmask, SIG_BLOCK, bad, NULL, MASK);
    TELL("sigprocmask new, no such way", SYS_rt_sigprocmask, 77, bad, NULL, MASK);
    TELL("sigprocmask size", SYS_rt_sigprocmask, SIG_BLOCK, bad, NULL, 4L);
    TELL("sigprocmask old", SYS_rt_sigprocmask, SIG_BLOCK, NULL, bad, MASK);
    TELL("sigprocmask both", SYS_rt_sigprocmask, SIG_BLOCK, at_end(MASK), bad, MASK);
    TELL("sigsuspend", SYS_rt_sigsuspend, bad, MASK);
    TELL("sigtimedwait", SYS_rt_sigtimedwait, bad, NULL, &now, MASK);
    TELL("ppoll", SYS_ppoll, NULL, 0, &now, bad, MASK);
    TELL("pselect", SYS_pselect6, 0, NULL, NULL, NULL, &now, bad);
    TELL("pselect behind", SYS_pselect6, 0, NULL, NULL, NULL, &now, &behind);
    TELL("pselect size", SYS_pselect6, 0, NULL, NULL, NULL, &now, &short_one);
    TELL("epoll_pwait", SYS_epoll_pwait, set, &event, 1L, 0L, bad, MASK);
    TELL("signalfd", SYS_signalfd4, -1L, bad, MASK, 0L);
    close(set);
}

static void actions(void *bad, size_t i) {
    struct sigaction before, after;
    sigaction(SIGUSR1, NULL, &before);
    TELL("sigaction new", SYS_rt_sigaction, SIGUSR1, bad, NULL, MASK);
    TELL("sigaction new, no such signal", SYS_rt_sigaction, 99, bad, NULL, MASK);
    TELL("sigaction of SIGKILL", SYS_rt_sigaction, SIGKILL, bad, NULL, MASK);
    sigaction(SIGUSR1, NULL, &after);
    printf("unchanged %d\n", before.sa_handler == after.sa_handler);
    /* The change has been made when the old one cannot be told. */
    struct { void (*handler)(int); unsigned long flags; void *restorer; unsigned long mask; } ignore = {SIG_IGN, 0, NULL, 0};
    TELL("sigaction old", SYS_rt_sigaction, SIGUSR1, &ignore, bad, MASK);
    sigaction(SIGUSR1, NULL, &after);
    printf("changed %d\n", after.sa_handler == SIG_IGN);
    signal(SIGUSR1, SIG_DFL);
}

static void paths(void *bad, size_t i) {
    char *list[] = {"x", NULL}, *bad_entry[] = {"x", bad, NULL}, buffer[100];
    memset(page, 'x', PAGE);
    TELL("open", SYS_open, bad, O_RDONLY);
    TELL("openat", SYS_openat, AT_FDCWD, bad, O_RDONLY);
    TELL("creat", SYS_creat, bad, 0600L);
    TELL("readlink", SYS_readlink, bad, buffer, 100);
    TELL("readlinkat", SYS_readlinkat, AT_FDCWD, bad, buffer, 100);
    TELL("execve path", SYS_execve, bad, list, list);
    TELL("execve arguments", SYS_execve, "/bin/true", bad, list);
    TELL("execve environment", SYS_execve, "/bin/true", list, bad);
    TELL("execve an argument", SYS_execve, "/bin/true", bad_entry, list);
    TELL("execve a variable", SYS_execve, "/bin/true", list, bad_entry);
    TELL("execve of nothing", SYS_execve, "/nonexistent", bad_entry, list);
    TELL("execveat path", SYS_execveat, AT_FDCWD, bad, list, list, 0);
    TELL("execveat arguments", SYS_execveat, AT_FDCWD, "/bin/true", bad, list, 0);
    int directory = open("/bin", O_DIRECTORY);
    TELL("execveat environment", SYS_execveat, directory, "true", list, bad, 0);
    close(directory);
}

static void results(void *bad, size_t i) {
    struct sigevent event = {.sigev_notify = SIGEV_NONE};
    int id;
    TELL("pipe", SYS_pipe, bad);
    TELL("pipe2", SYS_pipe2, bad, O_CLOEXEC);
    TELL("socketpair", SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, bad);
    TELL("readlink into", SYS_readlink, "/proc/self/exe", bad, 100);
    TELL("readlink nothing into", SYS_readlink, "/proc/self/exe", bad, 0);
    for (int round = 0; round < 2000; round++) /* Nothing is used up. */
        if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, bad) != -1) printf("a timer was made\n");
    TELL("timer_create id", SYS_timer_create, CLOCK_MONOTONIC, &event, bad);
    TELL("timer_create event", SYS_timer_create, CLOCK_MONOTONIC, bad, &id);
    TELL("timer_create event, no such clock", SYS_timer_create, 77, bad, &id);
    TELL("prlimit", SYS_prlimit64, getpid(), 0, NULL, bad);
    TELL("sched_getaffinity", SYS_sched_getaffinity, 0, 1024, bad);
    TELL("get_robust_list", SYS_get_robust_list, 0, bad, bad);
}

/* Everything here is at the very end of what can be used. */
static void last_bytes(void) {
    size_t i = 99;
    struct timespec now = {0, 0};
    char **list;
    int status;
    TELL("sigprocmask", SYS_rt_sigprocmask, SIG_BLOCK, at_end(MASK), NULL, MASK);
    TELL("sigprocmask", SYS_rt_sigprocmask, SIG_BLOCK, NULL, at_end(MASK), MASK);
    TELL("sigprocmask", SYS_rt_sigprocmask, SIG_BLOCK, at_end(MASK - 1), NULL, MASK);
    TELL("sigaction", SYS_rt_sigaction, SIGUSR1, at_end(ACTION), NULL, MASK);
    TELL("sigaction", SYS_rt_sigaction, SIGUSR1, NULL, at_end(ACTION), MASK);
    TELL("sigaction", SYS_rt_sigaction, SIGUSR1, at_end(ACTION - 1), NULL, MASK);
    TELL("sigaction", SYS_rt_sigaction, SIGUSR1, NULL, at_end(ACTION - 1), MASK);
    TELL("ppoll", SYS_ppoll, NULL, 0, &now, at_end(MASK), MASK);
    TELL("open", SYS_open, strcpy(at_end(10), "/dev/null"), O_RDONLY);
    TELL("open unended", SYS_open, memcpy(at_end(9), "/dev/null", 9), O_RDONLY);
    TELL("readlink", SYS_readlink, "/proc/self/exe", at_end(3), 3);
    TELL("readlink", SYS_readlink, "/proc/self/exe", at_end(2), 3);
    int *id = at_end(4);
    TELL("timer_create", SYS_timer_create, CLOCK_MONOTONIC, NULL, id);
    TELL("timer_delete", SYS_timer_delete, *id);
    pid_t child = fork();
    if (child == 0) {
        list = memset(at_end(16), 0, 16);
        list[0] = "echo";
        execve("/bin/echo", list, NULL);
        _exit(9);
    }
    waitpid(child, &status, 0);
    printf("echo %d\n", WEXITSTATUS(status));
}

int main(void) {
    char *three = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    page = three + PAGE;
    read_only = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *inaccessible = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char name[] = "/tmp/bad_pointersXXXXXX";
    int file = mkstemp(name);
    unlink(name);
    /* Mapped, but beyond the end of its file. */
    void *beyond = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    printf("at hand\n");
    fflush(stdout);
    munmap(three, PAGE);
    munmap(three + 2 * PAGE, PAGE);
    void *bad[] = {(void *)8, (void *)-1, (void *)(1UL << 63), page + PAGE, page + PAGE - 3, inaccessible, beyond};
    for (size_t i = 0; i < COUNT(bad); i++) {
        masks(bad[i], i);
        actions(bad[i], i);
        paths(bad[i], i);
        results(bad[i], i);
    }
    results(read_only, 98);
    last_bytes();
    return 0;
}
