/* A child process forbids checkpoints, which are tried again and again; a wait with a time is over all the same when it should be.
 * trial: ranks=2 refuses=live-child */
#include "../common.h"
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    pid_t child = -1;
    if (trial_rank == 0) {
        child = fork();
        if (child == 0) {
            pause();
            _exit(99);
        }
    }
    trial_ready();
    double begin = trial_seconds();
    int result = poll(NULL, 0, 2000);
    double took = trial_seconds() - begin;
    CHECK(result == 0, "poll gives %d: %s", result, strerror(errno));
    CHECK(took >= 1.99 && took < 3.0, "poll of 2 s took %.2f s", took);
    trial_wait();
    if (trial_rank == 0) {
        int status = 0;
        kill(child, SIGKILL);
        CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status), "the child ended with %x", status);
    }
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
