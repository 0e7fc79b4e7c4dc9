/* The program runs helpers with system, popen, fork and posix_spawn, before the checkpoint and after it.
 * trial: ranks=2 */
#include "../common.h"
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

static void run_helpers(const char *when) {
    char text[256] = "";
    int status = system("exit 7");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7, "%s: system gave %d", when, status);
    FILE *pipe = popen("echo $((6*7)); echo ${LD_PRELOAD:-none}; cat /proc/self/comm", "r");
    CHECK(pipe != NULL, "%s: popen: %s", when, strerror(errno));
    CHECK(pipe && fgets(text, sizeof text, pipe) && strcmp(text, "42\n") == 0, "%s: the helper said '%s'", when, text);
    CHECK(pipe && fgets(text, sizeof text, pipe) && strcmp(text, "none\n") == 0, "%s: helpers preload %s", when, text);
    CHECK(pipe && fgets(text, sizeof text, pipe) && strcmp(text, "cat\n") == 0, "%s: the helper is called %s", when, text);
    CHECK(pipe && pclose(pipe) == 0, "%s: pclose", when);
    pid_t child = fork();
    if (child == 0) {
        char *arguments[] = {"sh", "-c", "test \"$0\" = word", "word", NULL};
        execvp("sh", arguments);
        _exit(99);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0, "%s: the child ended with %x", when, status);
    child = fork();
    if (child == 0) _exit(getppid() == getpid() ? 1 : 23);
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 23, "%s: forked, %x", when, status);
    char *arguments[] = {"true", NULL};
    CHECK(posix_spawnp(&child, "true", NULL, NULL, arguments, environ) == 0, "%s: posix_spawn", when);
    CHECK(waitpid(child, &status, 0) == child && status == 0, "%s: spawned, ended with %x", when, status);
    CHECK(waitpid(-1, &status, WNOHANG) == -1 && errno == ECHILD, "%s: there is a child that is not ours", when);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    run_helpers("before");
    trial_hold();
    run_helpers("after");
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
