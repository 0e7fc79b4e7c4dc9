/* Children that have ended before a checkpoint are waited for after it, in every way, and each of them once.
 * trial: ranks=2 */
#include "../common.h"
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static pid_t child(int status, int signal, int group) {
    pid_t pid = fork();
    if (pid == 0) {
        if (group) setpgid(0, 0);
        if (signal) raise(signal);
        _exit(status);
    }
    siginfo_t information;
    CHECK(waitid(P_PID, pid, &information, WEXITED | WNOWAIT) == 0, "%s", strerror(errno));
    return pid;
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    pid_t exited = child(7, 0, 0), killed = child(0, SIGTERM, 0), grouped = child(9, 0, 1), last = child(3, 0, 0);
    trial_hold();
    int status = -1;
    siginfo_t information;
    memset(&information, 0, sizeof information);
    CHECK(kill(exited, 0) == 0, "kill: %s", strerror(errno));
    CHECK(waitid(P_PID, exited, &information, WEXITED | WNOWAIT) == 0, "%s", strerror(errno));
    CHECK(information.si_pid == exited && information.si_code == CLD_EXITED && information.si_status == 7, "pid %d, code %d, status %d",
          information.si_pid, information.si_code, information.si_status);
    struct rusage usage;
    memset(&usage, 0xff, sizeof usage);
    CHECK(wait4(exited, &status, 0, &usage) == exited && WIFEXITED(status) && WEXITSTATUS(status) == 7, "%x", status);
    CHECK(usage.ru_maxrss > 0 && usage.ru_utime.tv_sec == 0, "it used %ld", usage.ru_maxrss);
    CHECK(waitpid(exited, &status, WNOHANG) == -1 && errno == ECHILD, "it is waited for twice");
    CHECK(waitpid(killed, &status, 0) == killed && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM, "%x", status);
    CHECK(waitpid(-grouped, &status, 0) == grouped && WEXITSTATUS(status) == 9, "%x", status);
    pid_t young = child(5, 0, 0);
    for (int rest = 0; rest < 2; rest++) {
        pid_t pid = wait(&status);
        CHECK((pid == last && WEXITSTATUS(status) == 3) || (pid == young && WEXITSTATUS(status) == 5), "%d: %x", pid, status);
    }
    CHECK(wait(&status) == -1 && errno == ECHILD, "there is one more");
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
