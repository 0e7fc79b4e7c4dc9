/* What a process and its threads have set for themselves stays so: memory policy, locked memory, large pages, dumps, the parent's id.
 * trial: ranks=2 flags=-pthread */
#include "../common.h"
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static int set, policies;

static long locked_now(void) {
    long kilobytes = -1;
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) sscanf(line, "VmLck: %ld", &kilobytes);
    if (status) fclose(status);
    return kilobytes;
}

static void *thread(void *argument) {
    unsigned long node = 1;
    int mode = -1, death = 0;
    unsigned long nodes[16] = {0};
    policies = syscall(SYS_set_mempolicy, 2, &node, 64) == 0;
    prctl(PR_SET_PDEATHSIG, SIGWINCH, 0, 0, 0);
    personality(ADDR_COMPAT_LAYOUT | personality(0xffffffff));
    __atomic_store_n(&set, 1, __ATOMIC_RELEASE);
    trial_wait();
    if (policies) {
        CHECK(syscall(SYS_get_mempolicy, &mode, nodes, 1024, 0, 0) == 0, "get_mempolicy: %s", strerror(errno));
        CHECK(mode == 2 && nodes[0] == 1, "memory policy %d, nodes %lx", mode, nodes[0]);
    }
    prctl(PR_GET_PDEATHSIG, &death, 0, 0, 0);
    CHECK(death == SIGWINCH, "death signal %d", death);
    CHECK(personality(0xffffffff) & ADDR_COMPAT_LAYOUT, "personality %x", personality(0xffffffff));
    return argument;
}

int main(int argc, char **argv) {
    trial_start_threads(&argc, &argv, MPI_THREAD_FUNNELED);
    size_t bytes = 8 * 4096;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int locks = mlock(memory, bytes) == 0;
    pthread_t one;
    pthread_create(&one, NULL, thread, NULL);
    while (!__atomic_load_n(&set, __ATOMIC_ACQUIRE)) usleep(1000);
    CHECK(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0, "THP: %s", strerror(errno));
    CHECK(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0, "dumpable: %s", strerror(errno));
    pid_t parent = getppid();
    trial_hold();
    CHECK(getppid() == parent, "parent %d, was %d", getppid(), parent);
    CHECK(kill(parent, 0) == 0, "the parent: %s", strerror(errno));
    CHECK(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1, "%s", "large pages again");
    CHECK(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0, "%s", "dumpable again");
    if (locks) CHECK(locked_now() >= (long)(bytes >> 10), "%ld KiB locked", locked_now());
    pthread_join(one, NULL);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
