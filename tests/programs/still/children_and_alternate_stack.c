/* A thread with an alternate signal stack makes children of every kind - some share its memory, and run on its stack until they become
 * another program - also from a handler that runs on that alternate stack.
 * trial: ranks=2 */
#include "../common.h"
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;
static char alternate[16384];
static int shared, done;

static int what_the_child_does(void) {
    int file = open("/dev/null", O_RDONLY), other = dup(file);
    shared++;
    return close(file) || close(other) || getpid() <= 0 ? 1 : 7;
}

static int end_of(pid_t child) {
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child, "%s", strerror(errno));
    return status;
}

static void make_children(void) {
    volatile int local = 41;
    int before = shared, end;
    pid_t child = vfork();
    if (child == 0) {
        local++;
        _exit(what_the_child_does());
    }
    end = end_of(child);
    CHECK(local == 42 && shared == before + 1 && WEXITSTATUS(end) == 7, "%d, %d, %x", local, shared - before, end);
    child = vfork();
    if (child == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(99);
    }
    CHECK((end = end_of(child)) == 0, "%x", end);
    char *words[] = {"true", NULL};
    CHECK(posix_spawn(&child, "/bin/true", NULL, NULL, words, environ) == 0, "%s", "posix_spawn");
    CHECK((end = end_of(child)) == 0, "%x", end);
    CHECK(system("exit 3") == 0x300, "%s", "system");
    done++;
}

static void on_signal(int number) {
    (void)number;
    char here;
    CHECK(&here >= alternate && &here < alternate + sizeof alternate, "%s", "the handler is not on the alternate stack");
    make_children();
}

int main(int argc, char **argv) {
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate}, now;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    trial_start(&argc, &argv);
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    for (int round = 0; round < 2; round++) {
        make_children();
        raise(SIGUSR1);
        if (round == 0) trial_hold();
    }
    CHECK(done == 4, "%d times", done);
    sigaltstack(NULL, &now);
    CHECK(now.ss_sp == alternate && now.ss_size == sizeof alternate && !now.ss_flags, "%p, %zu, %d", now.ss_sp, now.ss_size, now.ss_flags);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
