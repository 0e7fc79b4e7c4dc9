/* A child process lives: the checkpoint refuses, and the child ends as it should.
 * trial: ranks=2 refuses=live-child */
#include "../common.h"
#include <sys/wait.h>

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int ends[2];
    pid_t child = -1;
    if (trial_rank == 0) {
        CHECK(pipe(ends) == 0, "pipe");
        child = fork();
        if (child == 0) {
            char word;
            close(ends[1]);
            _exit(read(ends[0], &word, 1) == 1 ? word : 99);
        }
        close(ends[0]);
    }
    trial_hold();
    if (trial_rank == 0) {
        int status = 0;
        CHECK(write(ends[1], "\x15", 1) == 1, "write: %s", strerror(errno));
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 21, "the child ended with %x", status);
    }
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
