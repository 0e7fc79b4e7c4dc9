/* The process looks the same: ids, arguments, variables, directory, file mode mask, name, limits, its own executable.
 * trial: ranks=2 */
#include "../common.h"
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    pid_t process = getpid(), thread = gettid(), parent = getppid();
    char directory[PATH_MAX], executable[PATH_MAX] = "", again[PATH_MAX] = "", name[17] = "", path[PATH_MAX + 32];
    trial_path(path, sizeof path, "");
    CHECK(!getenv("TRIAL_DIR") || chdir(path) == 0, "chdir: %s", strerror(errno));
    CHECK(getcwd(directory, sizeof directory) != NULL, "getcwd");
    umask(027);
    setenv("SET_BEFORE", "a value with spaces", 1);
    unsetenv("HOME");
    ssize_t length = readlink("/proc/self/exe", executable, sizeof executable - 1);
    CHECK(length > 0 && strstr(executable, "environment"), "/proc/self/exe is '%s'", executable);
    char *own = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
    prctl(PR_GET_NAME, name);
    CHECK(strncmp(name, own, 15) == 0, "the thread is called '%s' and argv[0] '%s'", name, own);
    prctl(PR_SET_NAME, "renamed");
    struct rlimit limit = {0, 0}, core;
    getrlimit(RLIMIT_CORE, &core);
    limit.rlim_max = core.rlim_max;
    setrlimit(RLIMIT_CORE, &limit);
    setpriority(PRIO_PROCESS, 0, 3);
    char first[64];
    snprintf(first, sizeof first, "%s", argv[0]);
    trial_hold();
    CHECK(getpid() == process && gettid() == thread, "process %d thread %d, were %d and %d", getpid(), gettid(), process, thread);
    CHECK(getppid() == parent || getppid() > 0, "parent %d", getppid());
    CHECK(getcwd(again, sizeof again) && strcmp(again, directory) == 0, "directory '%s', was '%s'", again, directory);
    mode_t mask = umask(0);
    CHECK(mask == 027, "mask %o", mask);
    const char *value = getenv("SET_BEFORE");
    CHECK(value && strcmp(value, "a value with spaces") == 0, "variable '%s'", value);
    CHECK(getenv("HOME") == NULL, "a removed variable is back");
    memset(again, 0, sizeof again);
    CHECK(readlink("/proc/self/exe", again, sizeof again - 1) == length && strcmp(again, executable) == 0, "/proc/self/exe is '%s'", again);
    CHECK(argc == 1 && strncmp(argv[0], first, 63) == 0 && argv[1] == NULL, "arguments");
    prctl(PR_GET_NAME, name);
    CHECK(strcmp(name, "renamed") == 0, "the thread is called '%s'", name);
    getrlimit(RLIMIT_CORE, &limit);
    CHECK(limit.rlim_cur == 0, "limit %ld", (long)limit.rlim_cur);
    CHECK(getpriority(PRIO_PROCESS, 0) == 3, "priority %d", getpriority(PRIO_PROCESS, 0));
    CHECK(kill(getpid(), 0) == 0, "cannot find itself: %s", strerror(errno));
    CHECK(raise(0) == 0, "cannot signal itself: %s", strerror(errno));
    CHECK(sched_getcpu() >= 0, "sched_getcpu: %s", strerror(errno));
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
