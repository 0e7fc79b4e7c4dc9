/* Connections that lead out of the process: to a server of TCP and one of Unix sockets that the test has (OUTWARD_PORT, OUTWARD_PATH). After a restart (there is a
 * file `restarted`) their peers have closed them.
 * trial: ranks=2 */
#include "../common.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

static int option(int fd, int level, int name) {
    int value = -1;
    socklen_t length = sizeof value;
    CHECK(getsockopt(fd, level, name, &value, &length) == 0, "getsockopt: %s", strerror(errno));
    return value;
}

static void set(int fd, int level, int name, int value) {
    CHECK(setsockopt(fd, level, name, &value, sizeof value) == 0, "setsockopt: %s", strerror(errno));
}

static int connected(const void *at, socklen_t length) {
    int fd = socket(((const struct sockaddr *)at)->sa_family, SOCK_STREAM, 0);
    CHECK(fd >= 0 && connect(fd, at, length) == 0, "connect: %s", strerror(errno));
    return fd;
}

/* Sends a word to a server that sends it back. */
static void talks(int fd, const char *who) {
    char byte = 0;
    CHECK(write(fd, "x", 1) == 1 && recv(fd, &byte, 1, 0) == 1 && byte == 'x', "%s: no echo: %s", who, strerror(errno));
}

/* The peer has closed this connection: an error once, then the end. */
static void is_lost(int fd, const char *who) {
    char byte;
    struct pollfd poll_it = {.fd = fd, .events = POLLIN};
    CHECK(poll(&poll_it, 1, 0) == 1 && poll_it.revents & POLLHUP, "%s: %#x", who, poll_it.revents);
    CHECK(recv(fd, &byte, 1, 0) == -1 && errno == ECONNRESET, "%s: %s", who, strerror(errno));
    CHECK(recv(fd, &byte, 1, 0) == 0, "%s: does not end", who);
    CHECK(send(fd, &byte, 1, MSG_NOSIGNAL) == -1 && errno == EPIPE, "%s: %s", who, strerror(errno));
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(atoi(getenv("OUTWARD_PORT"))), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 at6 = {.sin6_family = AF_INET6, .sin6_port = at.sin_port};
    memcpy(at6.sin6_addr.s6_addr, (unsigned char[]){0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1}, 16);
    struct sockaddr_un path = {.sun_family = AF_UNIX};
    snprintf(path.sun_path, sizeof path.sun_path, "%s", getenv("OUTWARD_PATH"));

    int tcp = connected(&at, sizeof at), tcp6 = connected(&at6, sizeof at6), local = connected(&path, sizeof path), unread = connected(&at, sizeof at);
    int finished = connected(&at, sizeof at);
    set(tcp, SOL_SOCKET, SO_KEEPALIVE, 1);
    set(tcp, IPPROTO_TCP, TCP_KEEPIDLE, 77);
    set(tcp, IPPROTO_TCP, TCP_NODELAY, 1);
    fcntl(tcp6, F_SETFL, O_NONBLOCK);
    talks(tcp, "TCP");
    talks(local, "Unix");
    talks(finished, "TCP");
    /* Bytes that nobody reads before the checkpoint; of one connection the peer has closed after them. */
    struct pollfd comes = {.fd = unread, .events = POLLRDHUP};
    CHECK(write(unread, "zz", 2) == 2 && shutdown(unread, SHUT_WR) == 0 && poll(&comes, 1, 10000) == 1, "write: %s", strerror(errno));
    /* This one has come to its end, and the program knows it. */
    char byte = 0;
    CHECK(shutdown(finished, SHUT_WR) == 0 && recv(finished, &byte, 1, 0) == 0, "it does not end: %s", strerror(errno));
    /* So has this one. */
    int gone = connected(&path, sizeof path);
    comes.fd = gone;
    talks(gone, "Unix");
    CHECK(shutdown(gone, SHUT_WR) == 0 && poll(&comes, 1, 10000) == 1, "it stays: %s", strerror(errno));
    usleep(100000);

    /* Told once of what can be written to, and of nothing else until something changes. */
    int edges = epoll_create1(0), levels = epoll_create1(0);
    struct epoll_event edge = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.u64 = 7}, level = {.events = EPOLLIN, .data.u64 = 8}, told[4];
    CHECK(epoll_ctl(edges, EPOLL_CTL_ADD, tcp, &edge) == 0 && epoll_ctl(levels, EPOLL_CTL_ADD, local, &level) == 0, "epoll_ctl: %s", strerror(errno));
    CHECK(epoll_wait(edges, told, 4, 0) == 1 && epoll_wait(edges, told, 4, 0) == 0 && epoll_wait(levels, told, 4, 0) == 0, "the sets are not as they should be");

    trial_hold();
    char name[4096];
    snprintf(name, sizeof name, "%s/restarted", getenv("TRIAL_DIR"));
    if (access(name, F_OK) == 0) {
        CHECK(epoll_wait(edges, told, 4, 1000) == 1 && told[0].data.u64 == 7 && told[0].events & EPOLLHUP, "the set with edges says nothing");
        CHECK(epoll_wait(levels, told, 4, 1000) == 1 && told[0].data.u64 == 8 && told[0].events & EPOLLHUP, "the set says nothing");
        is_lost(tcp, "TCP");
        is_lost(tcp6, "TCP over IPv6");
        is_lost(local, "Unix");
        is_lost(unread, "unread");
    } else {
        char text[3] = "";
        talks(tcp, "TCP");
        talks(local, "Unix");
        CHECK(read(unread, text, 3) == 2 && strcmp(text, "zz") == 0, "the bytes are lost: '%s'", text);
    }
    CHECK(recv(finished, &byte, 1, 0) == 0, "it had come to its end: %s", strerror(errno));
    CHECK(recv(gone, &byte, 1, 0) == 0, "its peer had closed it: %s", strerror(errno));
    CHECK(option(tcp, SOL_SOCKET, SO_KEEPALIVE) == 1 && option(tcp, IPPROTO_TCP, TCP_KEEPIDLE) == 77 && option(tcp, IPPROTO_TCP, TCP_NODELAY) == 1, "options");
    CHECK(fcntl(tcp6, F_GETFL) & O_NONBLOCK, "it blocks");
    talks(connected(&at, sizeof at), "a new connection");
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
