/* Holds everything in the kernel that a checkpoint cannot carry and that the kernel tells nobody of afterwards. The file
 * `held` has a word for each that this machine lets it hold; some are there for no program (a kernel without them).
 * trial: ranks=1 */
#include "../common.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/io.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static FILE *held;

static void holds(long result, const char *word) {
    if (result >= 0) fprintf(held, "%s\n", word);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    char path[PATH_MAX];
    trial_path(path, sizeof path, "held");
    held = fopen(path, "w");
    CHECK(held != NULL, "%s: %s", path, strerror(errno));
    if (!held) return trial_finish();
    unsigned long context = 0;
    holds(syscall(SYS_io_setup, 1, &context), "asynchronous I/O");
    signal(SIGIO, SIG_IGN);
    holds(fcntl(open(".", O_RDONLY | O_DIRECTORY), F_NOTIFY, 4 /* DN_CREATE */), "F_NOTIFY");
    unsigned segment[4] = {0, 0, 0, 0x28};
    holds((int)syscall(SYS_modify_ldt, 1, segment, sizeof segment), "modify_ldt");
    holds(syscall(SYS_keyctl, 1, NULL), "key rings");
    holds(syscall(SYS_ioperm, 0x80, 1, 1), "I/O ports");
    holds(syscall(SYS_pkey_alloc, 0, 0), "pkey_alloc");
    holds(prctl(59 /* PR_SET_SYSCALL_USER_DISPATCH */, 1, 0, -1L, 0), "settings by prctl");
    void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    holds(syscall(462 /* mseal */, page, 4096, 0), "mseal");
    holds(chroot("/"), "chroot");
    holds(unshare(CLONE_NEWUTS), "namespaces");
    holds(unshare(CLONE_FS), "directory of its own");
    pid_t child = fork();
    if (child == 0)
        for (;;) pause();
    holds(ptrace(0x4206 /* PTRACE_SEIZE */, child, NULL, NULL), "ptrace");
    uint64_t may_not[] = {1 << 11 /* LANDLOCK_ACCESS_FS_MAKE_BLOCK */};
    long rules = syscall(444 /* landlock_create_ruleset */, may_not, sizeof may_not, 0);
    if (rules >= 0) {
        holds(syscall(446 /* landlock_restrict_self */, rules, 0), "restricted itself");
        close((int)rules);
    }
    struct sock_filter everything = {.code = BPF_RET | BPF_K, .k = SECCOMP_RET_ALLOW};
    struct sock_fprog filter = {.len = 1, .filter = &everything};
    holds(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter), "seccomp");
    fclose(held);
    trial_hold();
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child, "the child: %s", strerror(errno));
    return trial_finish();
}
