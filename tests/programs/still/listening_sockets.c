/* Sockets that listen at abstract names: streams and packets, with flags, options, a duplicate, and an epoll set that tells of clients. Clients are served
 * before a checkpoint and after it.
 * trial: ranks=2 */
#include "../common.h"
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

static socklen_t name_of(struct sockaddr_un *at, const char *what) {
    *at = (struct sockaddr_un){.sun_family = AF_UNIX};
    int length = snprintf(at->sun_path + 1, sizeof at->sun_path - 1, "stillpoint-%s-%d-%d", what, (int)getpid(), trial_rank);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static int listening(const char *what, int type) {
    struct sockaddr_un at;
    socklen_t bytes = name_of(&at, what);
    int fd = socket(AF_UNIX, type, 0);
    CHECK(fd >= 0 && bind(fd, (void *)&at, bytes) == 0 && listen(fd, 3) == 0, "%s: %s", what, strerror(errno));
    return fd;
}

/* A client comes, both ends talk, and it goes. */
static void serves(int listener, const char *what, int type) {
    struct sockaddr_un at;
    socklen_t bytes = name_of(&at, what);
    int client = socket(AF_UNIX, type, 0);
    CHECK(connect(client, (void *)&at, bytes) == 0, "%s: connect: %s", what, strerror(errno));
    int end = accept(listener, NULL, NULL);
    char text[8] = "";
    CHECK(send(client, "hello", 5, 0) == 5 && recv(end, text, sizeof text, 0) == 5 && !memcmp(text, "hello", 5), "%s: '%s': %s", what, text, strerror(errno));
    close(client);
    close(end);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int one = 1, option = 0;
    socklen_t bytes = sizeof option;
    int stream = listening("stream", SOCK_STREAM), packet = listening("packet", SOCK_SEQPACKET | SOCK_CLOEXEC);
    fcntl(packet, F_SETFL, O_NONBLOCK);
    setsockopt(stream, SOL_SOCKET, SO_PASSCRED, &one, sizeof one);
    int twice = dup(stream), set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 9}, told;
    CHECK(epoll_ctl(set, EPOLL_CTL_ADD, stream, &event) == 0, "epoll_ctl: %s", strerror(errno));
    serves(twice, "stream", SOCK_STREAM);
    serves(packet, "packet", SOCK_SEQPACKET);

    trial_ready();
    trial_wait();

    CHECK(accept(packet, NULL, NULL) == -1 && errno == EAGAIN, "accept: %s", strerror(errno));
    CHECK(fcntl(packet, F_GETFD) == FD_CLOEXEC && fcntl(stream, F_GETFD) == 0, "flags are lost");
    CHECK(getsockopt(twice, SOL_SOCKET, SO_PASSCRED, &option, &bytes) == 0 && option == 1, "option: %d", option);
    CHECK(getsockopt(twice, SOL_SOCKET, SO_ACCEPTCONN, &option, &bytes) == 0 && option == 1, "it does not listen");
    CHECK(epoll_wait(set, &told, 1, 0) == 0, "a client is told of that never came");
    struct sockaddr_un at;
    socklen_t length = name_of(&at, "stream");
    int client = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(connect(client, (void *)&at, length) == 0 && epoll_wait(set, &told, 1, 5000) == 1 && told.data.u64 == 9, "no client is told of: %s", strerror(errno));
    close(accept(stream, NULL, NULL));
    close(client);
    serves(twice, "stream", SOCK_STREAM);
    serves(packet, "packet", SOCK_SEQPACKET);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
