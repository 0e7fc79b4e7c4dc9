/* A child process lives until there is a file `end`: what hinders a checkpoint passes.
 * trial: ranks=2 */
#include "../common.h"
#include <sys/wait.h>

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    char path[PATH_MAX];
    trial_path(path, sizeof path, "end");
    pid_t child = -1;
    if (trial_rank == 0) {
        child = fork();
        if (child == 0) {
            while (access(path, F_OK) != 0) usleep(1000);
            _exit(21);
        }
        CHECK(child > 0, "fork: %s", strerror(errno));
    }
    trial_ready();
    int status = -1;
    while (!trial_go()) {
        if (child > 0 && waitpid(child, &status, WNOHANG) == child) child = 0;
        usleep(1000);
    }
    if (trial_rank == 0)
        CHECK(child == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 21, "the child %d ended with %x", (int)child, status);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
