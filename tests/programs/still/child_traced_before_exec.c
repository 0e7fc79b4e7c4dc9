/* A debugger's way to start a program: a child that shares its parent's memory asks to be traced, and becomes the program.
 * trial: ranks=2 */
#include "../common.h"
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

/* How the child ends, and how often it has stopped as a new program. */
static int traced(int *stops) {
    pid_t child = vfork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        signal(SIGTTOU, SIG_DFL);
        execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
        _exit(1);
    }
    CHECK(child > 0, "errno %d", errno);
    int status = 0;
    *stops = 0;
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        int signal = WSTOPSIG(status);
        if (signal == SIGTRAP) {
            ++*stops;
            signal = 0;
        }
        CHECK(ptrace(PTRACE_CONT, child, NULL, (void *)(long)signal) == 0, "errno %d", errno);
    }
    return status;
}

static void look(void) {
    int stops, status = traced(&stops);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7, "status %#x", status);
    CHECK(stops == 1, "%d stops", stops);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    look();
    trial_hold();
    look();
    return trial_finish();
}
