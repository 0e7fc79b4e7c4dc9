/* A handler that has interrupted a stub in its first instructions, before it is inside of MPI, and stays until the file `on` is there. Rank 0 alone, by single steps.
 * trial: ranks=1 */
#include "../common.h"
#include <signal.h>
#include <ucontext.h>

/* Instructions of the stub that have been run. */
static volatile int steps;
static volatile int returned;

static int is_there(const char *name) {
    char path[PATH_MAX];
    trial_path(path, sizeof path, name);
    return !getenv("TRIAL_DIR") || access(path, F_OK) == 0;
}

static void on_step(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    ucontext_t *at = context;
    greg_t *registers = at->uc_mcontext.gregs;
    uintptr_t here = (uintptr_t)registers[REG_RIP], stub = (uintptr_t)MPI_Iprobe;
    /* From the stub's second instruction on. */
    if (steps == 0 && (here <= stub || here > stub + 64)) return;
    if (steps++ > 0) return;
    registers[REG_EFL] &= ~0x100;
    trial_ready();
    while (!is_there("on")) usleep(2000);
    returned = 1;
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int (*volatile probe)(int, int, MPI_Comm, int *, MPI_Status *) = MPI_Iprobe;
    int flag = -1;
    /* The way that it goes is found out by the first calls. */
    for (int i = 0; i < 10; i++) MUST(probe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(SIGTRAP, &action, NULL) == 0, "%s", strerror(errno));
    __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
    int code = probe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
    CHECK(code == MPI_SUCCESS && flag == 0, "code %d, flag %d", code, flag);
    CHECK(steps > 0 && returned, "no step was seen in the stub");
    trial_wait();
    MUST(probe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    MPI_Finalize();
    if (trial_failures) return 1;
    printf("OK %d\n", trial_rank);
    return 0;
}
