/* Another process, no child of this one, has an end of a socket pair: the checkpoint refuses, and the two go on talking.
 * trial: ranks=2 refuses=open-socket */
#include "../common.h"
#include <sys/socket.h>
#include <sys/wait.h>

/* Sends back what it gets, until nobody can send any more. */
static void echo(int end) {
    char byte;
    while (read(end, &byte, 1) == 1 && write(end, &byte, 1) == 1) continue;
    _exit(0);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int ends[2] = {-1, -1};
    if (trial_rank == 1) {
        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "socketpair: %s", strerror(errno));
        pid_t child = fork();
        if (child == 0) {
            close(ends[0]);
            if (fork() == 0) echo(ends[1]);
            _exit(0);
        }
        CHECK(waitpid(child, NULL, 0) == child, "waitpid: %s", strerror(errno));
        close(ends[1]);
    }
    trial_hold();
    if (trial_rank == 1) {
        char byte = 0;
        CHECK(write(ends[0], "x", 1) == 1 && read(ends[0], &byte, 1) == 1 && byte == 'x', "no echo: %s", strerror(errno));
        close(ends[0]);
    }
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
