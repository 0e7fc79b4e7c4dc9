/* What cannot be carried: a checkpoint is refused, with the code that names it, and the program runs on as if nothing had been. */
#include "feature.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

static int listener;
REFUSED("open-socket", socket_that_listens)
SET(socket_that_listens) {
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    DOES(listener = socket(AF_INET, SOCK_STREAM, 0));
    DOES(bind(listener, (struct sockaddr *)&here, sizeof here));
    DOES(listen(listener, 3));
}
AFTER(socket_that_listens) {
    struct sockaddr_in here;
    socklen_t bytes = sizeof here;
    DOES(getsockname(listener, (struct sockaddr *)&here, &bytes));
    int client = socket(AF_INET, SOCK_STREAM, 0), served;
    DOES(connect(client, (struct sockaddr *)&here, bytes));
    DOES(served = accept(listener, NULL, NULL));
    DOES(write(client, "hello", 5));
    reads(served, "hello");
    close(client);
    close(served);
    close(listener);
}

static int datagrams;
REFUSED("open-socket", socket_for_datagrams)
SET(socket_for_datagrams) {
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    DOES(datagrams = socket(AF_INET, SOCK_DGRAM, 0));
    DOES(bind(datagrams, (struct sockaddr *)&here, sizeof here));
}
AFTER(socket_for_datagrams) {
    struct sockaddr_in here;
    socklen_t bytes = sizeof here;
    DOES(getsockname(datagrams, (struct sockaddr *)&here, &bytes));
    DOES(sendto(datagrams, "self", 4, 0, (struct sockaddr *)&here, bytes));
    reads(datagrams, "self");
    close(datagrams);
}

static pid_t sleeper;
REFUSED("live-child", child_that_lives)
SET(child_that_lives) {
    sleeper = fork();
    if (sleeper == 0) {
        for (;;) pause();
    }
    CHECK(sleeper > 0, "%s", strerror(errno));
}
AFTER(child_that_lives) {
    int status = 0;
    DOES(kill(sleeper, SIGTERM));
    CHECK(waitpid(sleeper, &status, 0) == sleeper && WTERMSIG(status) == SIGTERM, "%x", status);
}

static MPI_Win window_alone;
static int *window_alone_memory;
REFUSED("mpi-window", window_of_one_process)
SET(window_of_one_process) {
    MUST(MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_SELF, &window_alone_memory, &window_alone));
    *window_alone_memory = -1;
    MUST(MPI_Win_fence(0, window_alone));
}
AFTER(window_of_one_process) {
    int value = trial_rank;
    MUST(MPI_Win_fence(0, window_alone));
    MUST(MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, window_alone));
    MUST(MPI_Win_fence(0, window_alone));
    CHECK(*window_alone_memory == trial_rank, "%d", *window_alone_memory);
    MUST(MPI_Win_free(&window_alone));
}
