/* A child of vfork shares its parent's memory until it ends or becomes another program.
 * trial: ranks=1 flags=-pthread,-Wno-deprecated-declarations,-Wno-clobbered */
#include "../common.h"
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

static volatile int told;

static int status_of(pid_t child) {
    int status = -1;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
    return WEXITSTATUS(status);
}

/* Uses much stack, below that of the caller. */
__attribute__((noinline)) static int deep(int depth) {
    volatile char used[256];
    memset((char *)used, depth, sizeof used);
    return depth ? deep(depth - 1) + used[7] - depth : 0;
}

static void children(void) {
    for (int i = 0; i < 50; i++) {
        volatile int kept = trial_rank + i * 3;
        double number = 0.5 * i;
        pid_t child = vfork();
        if (child == 0) {
            told = deep(20) + 1000 + i;
            _exit(i % 7);
        }
        CHECK(status_of(child) == i % 7, "%d", i);
        CHECK(told == 1000 + i, "told %d", told);
        CHECK(kept == trial_rank + i * 3 && number == 0.5 * i, "%s", "the parent's own");
    }
    pid_t child = vfork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", "exit 9", (char *)NULL);
        _exit(1);
    }
    CHECK(status_of(child) == 9, "%s", "another program");
    child = vfork();
    if (child == 0) {
        execl("/no/such/program", "none", (char *)NULL);
        told = errno;
        _exit(3);
    }
    CHECK(status_of(child) == 3 && told == ENOENT, "%d", told);
    child = vfork();
    if (child == 0) { /* what it does with its descriptors and signals is its own */
        close(1);
        signal(SIGUSR1, SIG_IGN);
        told = getpid();
        _exit(0);
    }
    int id = child;
    CHECK(status_of(child) == 0 && told == id, "%d for %d", told, id);
    CHECK(fcntl(1, F_GETFD) >= 0, "%s", "its parent's descriptor is closed");
    struct sigaction action;
    sigaction(SIGUSR1, NULL, &action);
    CHECK(action.sa_handler == SIG_DFL, "%s", "its parent's signal is ignored");
    char *arguments[] = {"sh", "-c", "exit 4", NULL}, *none[] = {NULL};
    CHECK(posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, none) == 0 && status_of(child) == 4, "%s", "spawned");
    CHECK(posix_spawn(&child, "/no/such/program", NULL, NULL, arguments, none) == ENOENT, "%s", "spawned from nothing");
    CHECK(WEXITSTATUS(system("exit 5")) == 5, "%s", "a command");
}

static void *on_a_thread(void *argument) {
    children();
    return argument;
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    for (int restarted = 0; restarted < 2; restarted++) {
        children();
        pthread_t thread;
        pthread_attr_t attribute;
        pthread_attr_init(&attribute);
        pthread_attr_setstacksize(&attribute, 128 << 10);
        pthread_create(&thread, &attribute, on_a_thread, NULL);
        pthread_join(thread, NULL);
        if (!restarted) trial_hold();
    }
    return trial_finish();
}
