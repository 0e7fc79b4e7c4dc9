/* Each rank runs one child after the other, so that there is hardly a moment in which no rank has one.
 * trial: ranks=2 */
#include "../common.h"
#include <sys/wait.h>

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    long sum = 0, children = 0;
    for (int going = 1; going; children++) {
        pid_t pid = fork();
        if (pid == 0) {
            usleep(60000 + 20000 * trial_rank);
            _exit(children % 100);
        }
        int status = -1;
        CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status), "%x", status);
        CHECK(WEXITSTATUS(status) == children % 100, "child %ld ended with %d", children, WEXITSTATUS(status));
        sum += WEXITSTATUS(status);
        if (children == 2 && trial_rank == 0) trial_ready();
        if (children % 8 == 7) {
            going = trial_rank == 0 ? !trial_go() : 0;
            MUST(MPI_Bcast(&going, 1, MPI_INT, 0, MPI_COMM_WORLD));
        }
    }
    long all = 0;
    MUST(MPI_Allreduce(&sum, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
    CHECK(all == 2 * sum, "%ld of %ld", sum, all);
    return trial_finish();
}
