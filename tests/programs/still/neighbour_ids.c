/* Ranks tell each other their process ids, and use them afterwards: signals, memory, scheduling, /proc. A rank is known by the id that it has told.
 * trial: ranks=2,4 */
#include "../common.h"
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>

struct rank {
    pid_t pid;
    uint64_t *words;
};

static volatile sig_atomic_t by_process, by_thread;

static void on_signal(int signal, siginfo_t *info, void *context) {
    (void)context;
    *(signal == SIGUSR1 ? &by_process : &by_thread) = info->si_pid;
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    uint64_t words[2] = {1000 + (uint64_t)trial_rank, 0};
    struct rank own = {getpid(), words}, *all = calloc((size_t)trial_size, sizeof *all);
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    MUST(MPI_Allgather(&own, sizeof own, MPI_BYTE, all, sizeof own, MPI_BYTE, MPI_COMM_WORLD));
    trial_hold();
    int next = (trial_rank + 1) % trial_size, before = (trial_rank + trial_size - 1) % trial_size;
    pid_t pid = all[next].pid;
    CHECK(getpid() == own.pid && kill(pid, 0) == 0, "process %d: %s", pid, strerror(errno));
    /* Where the system forbids it to all, it forbade it before. */
    uint64_t read = 0, written = 2000 + (uint64_t)trial_rank;
    struct iovec here = {&read, sizeof read}, there = {&all[next].words[0], sizeof read};
    ssize_t moved = process_vm_readv(pid, &here, 1, &there, 1, 0);
    CHECK((moved == sizeof read && read == 1000 + (uint64_t)next) || (moved < 0 && errno == EPERM), "read %lld: %s", (long long)read, strerror(errno));
    here.iov_base = &written, there.iov_base = &all[next].words[1];
    ssize_t sent = process_vm_writev(pid, &here, 1, &there, 1, 0);
    CHECK(sent == sizeof written || (sent < 0 && errno == EPERM), "written: %s", strerror(errno));
    cpu_set_t processors;
    CHECK(sched_getaffinity(pid, sizeof processors, &processors) == 0, "processors: %s", strerror(errno));
    CHECK(getpriority(PRIO_PROCESS, (id_t)pid) == getpriority(PRIO_PROCESS, 0), "nice value");
    struct rlimit limit;
    CHECK(prlimit(pid, RLIMIT_CORE, NULL, &limit) == 0 || errno == EPERM, "limit: %s", strerror(errno));
    /* 0 where its leader is outside the namespace of process ids. */
    CHECK(getsid(pid) >= 0, "session: %s", strerror(errno));
    char path[64], mine[256] = "", others[256] = "-";
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    int file = open(path, O_RDONLY), self = open("/proc/self/comm", O_RDONLY);
    CHECK(file >= 0 && pread(file, others, sizeof others - 1, 0) > 0 && pread(self, mine, sizeof mine - 1, 0) > 0, "%s: %s", path, strerror(errno));
    CHECK(strcmp(mine, others) == 0, "process %d is %s", pid, others);
    close(file), close(self);
    CHECK(kill(pid, SIGUSR1) == 0, "signal: %s", strerror(errno));
    CHECK(syscall(SYS_tgkill, pid, pid, SIGUSR2) == 0, "signal to a thread: %s", strerror(errno));
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < 10000 && !(by_process && by_thread); i++)
        usleep(1000);
    pid_t known = all[before].pid;
    CHECK(by_process == known && by_thread == known, "signals by %d and %d, not %d", (int)by_process, (int)by_thread, known);
    CHECK(words[1] == (sent < 0 ? 0 : 2000 + (uint64_t)before), "written here: %llu", (unsigned long long)words[1]);
    return trial_finish();
}
