/* Children of every kind know who they are, who their parent is, and whom they signal. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct told { pid_t pid, tid, parent, group; };
static char stack[1 << 16];
static struct told *told;

static int tell(void *unused) {
    (void)unused;
    *told = (struct told){getpid(), (pid_t)syscall(SYS_gettid), getppid(), getpgid(0)};
    return 7;
}

static int die(void *unused) {
    (void)unused;
    kill(getpid(), SIGKILL);
    return 7;
}

static int raise_here(void *unused) {
    (void)unused;
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGKILL);
    return 7;
}

static void check(const char *what, pid_t child) {
    int status;
    if (waitpid(child, &status, __WALL) != child) printf("%s: nobody to wait for\n", what);
    printf("%s: pid %d tid %d parent %d group %d, ended %d, signal %d\n", what, told->pid == child, told->tid == child,
           told->parent == getpid(), told->group == getpgid(0), WEXITSTATUS(status), WTERMSIG(status));
    *told = (struct told){0, 0, 0, 0};
    fflush(stdout);
}

int main(void) {
    void *top = stack + sizeof stack;
    told = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    if (child == 0) _exit(tell(NULL));
    check("fork", child);
    child = vfork();
    if (child == 0) _exit(tell(NULL));
    check("vfork", child);
    check("clone", clone(tell, top, SIGCHLD, NULL));
    check("clone, memory", clone(tell, top, CLONE_VM | SIGCHLD, NULL));
    check("clone, memory, vfork", clone(tell, top, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL));
    check("clone, memory, files", clone(tell, top, CLONE_VM | CLONE_FILES | CLONE_FS | SIGCHLD, NULL));
    check("clone, vfork", clone(tell, top, CLONE_VFORK | SIGCHLD, NULL));
    check("kill", clone(die, top, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL));
    check("tgkill", clone(raise_here, top, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL));
    printf("still %d\n", getpid() == (pid_t)syscall(SYS_gettid));
    return 0;
}
