/* The C library's `syscall` makes any call from one place: made often, each answers the same, with all six arguments, while signals come in between - before a restart
 * and after it, and in a child that shares its parent's memory.
 * trial: ranks=1 */
#include "../common.h"
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

/* How often a call is made before it must have gone another way. */
#define OFTEN 300
#define MANY_BYTES (64L << 20)

static volatile long came;
static void on_signal(int signal) {
    (void)signal;
    came++;
}

/* The sixth argument lies on the stack. */
static void pages_of_a_file(int file) {
    for (long page = 0; page < 4; page++) {
        char *map = (char *)syscall(SYS_mmap, NULL, 4096, PROT_READ, MAP_PRIVATE, file, page * 4096);
        CHECK(map != MAP_FAILED && map[0] == 'a' + page && map[4095] == 'a' + page, "page %ld of a file: %s", page, strerror(errno));
        CHECK(syscall(SYS_munmap, map, 4096) == 0, "%s", strerror(errno));
    }
}

static void memory(void) {
    char *map = (char *)syscall(SYS_mmap, NULL, MANY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
    CHECK(map != MAP_FAILED, "%s", strerror(errno));
    map[0] = 1, map[MANY_BYTES - 1] = 2;
    CHECK(syscall(SYS_munmap, map, MANY_BYTES) == 0, "%s", strerror(errno));
    map = (char *)syscall(SYS_mmap, NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
    CHECK(map != MAP_FAILED, "%s", strerror(errno));
    map[8191] = 3;
    map = (char *)syscall(SYS_mremap, map, 8192, 1 << 20, MREMAP_MAYMOVE);
    CHECK(map != MAP_FAILED && map[8191] == 3 && map[8192] == 0, "%s", strerror(errno));
    CHECK(syscall(SYS_munmap, map, 1 << 20) == 0, "%s", strerror(errno));
    CHECK(syscall(SYS_mmap, NULL, 0L, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L) == -1 && errno == EINVAL, "%s", "mmap of nothing");
}

static void descriptors(void) {
    long file = syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR, 0), other = syscall(SYS_dup, file);
    CHECK(file >= 0 && other > file, "descriptors %ld and %ld", file, other);
    CHECK(syscall(SYS_write, other, "x", 1L) == 1 && syscall(SYS_close, other) == 0 && syscall(SYS_close, file) == 0, "%s", strerror(errno));
    CHECK(syscall(SYS_close, file) == -1 && errno == EBADF, "%s", "closed twice");
    CHECK(syscall(SYS_openat, AT_FDCWD, NULL, O_RDONLY, 0) == -1 && errno == EFAULT, "%s", "no path");
    CHECK(syscall(SYS_access, "/nowhere", R_OK) == -1 && errno == ENOENT && syscall(SYS_access, "/dev/null", R_OK) == 0, "%s", "access");
}

static void names_and_signals(void) {
    uint64_t bit = UINT64_C(1) << (SIGUSR1 - 1), before, blocked;
    CHECK(syscall(SYS_getpid) == getpid() && syscall(SYS_gettid) == gettid(), "process %ld", syscall(SYS_getpid));
    CHECK(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &bit, &before, 8L) == 0 && !(before & bit), "%s", strerror(errno));
    long seen = came;
    CHECK(syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1) == 0 && syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, &blocked, 8L) == 0, "%s", strerror(errno));
    CHECK(blocked == (before | bit) && came > seen, "%s", "a signal has not come");
    CHECK(syscall(-1) == -1 && errno == ENOSYS && syscall(511) == -1 && errno == ENOSYS && syscall(512) == -1 && syscall(1L << 40 | 511) == -1, "%s", "no such call");
}

static void all(int file) {
    pages_of_a_file(file);
    memory();
    descriptors();
    names_and_signals();
}

static volatile long by_child[3];

static int in_child(void *unused) {
    (void)unused;
    by_child[0] = syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY, 0);
    by_child[1] = syscall(SYS_dup, by_child[0]);
    by_child[2] = syscall(SYS_close, by_child[0]);
    return 7;
}

static void child(void) {
    static _Alignas(16) char stack[256 * 1024];
    int status;
    pid_t id = clone(in_child, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
    CHECK(id > 0 && waitpid(id, &status, 0) == id && WIFEXITED(status) && WEXITSTATUS(status) == 7, "%s", "the child has not ended as it should");
    CHECK(by_child[0] >= 0 && by_child[1] > by_child[0] && by_child[2] == 0, "descriptors of a child: %ld, %ld", by_child[0], by_child[1]);
    CHECK(syscall(SYS_dup, by_child[1]) == -1 && errno == EBADF, "%s", "a child's descriptor is its parent's");
}

static void often(int file, const struct itimerval *each) {
    for (int i = 0; i < OFTEN; i++) all(file);
    for (int i = 0; i < 20; i++) child();
    /* Signals of a timer find the thread anywhere in a call. */
    const struct itimerval none = {{0, 0}, {0, 0}};
    long seen = came;
    CHECK(setitimer(ITIMER_REAL, each, NULL) == 0, "%s", strerror(errno));
    for (int i = 0; i < OFTEN || came < seen + 200; i++) all(file);
    CHECK(setitimer(ITIMER_REAL, &none, NULL) == 0, "%s", strerror(errno));
}

int main(int argc, char **argv) {
    const struct itimerval each = {{0, 150}, {0, 150}};
    char name[] = "pages.XXXXXX", bytes[4096];
    trial_start(&argc, &argv);
    int file = mkstemp(name);
    CHECK(file >= 0, "%s", strerror(errno));
    for (int page = 0; page < 4; page++) {
        memset(bytes, 'a' + page, sizeof bytes);
        CHECK(write(file, bytes, sizeof bytes) == sizeof bytes, "%s", strerror(errno));
    }
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0 && sigaction(SIGALRM, &action, NULL) == 0, "%s", strerror(errno));
    often(file, &each);
    trial_hold();
    often(file, &each);
    close(file);
    unlink(name);
    return trial_finish();
}
