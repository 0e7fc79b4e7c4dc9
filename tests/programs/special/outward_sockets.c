/* Sockets that lead out of the job: to a server of TCP and one of Unix sockets that the test has (OUTWARD_PORT, OUTWARD_PATH), and sockets of the program's own
 * that listen, or are for datagrams. After a restart (there is a file `restarted`), connections are closed by their peers, and the others work as before.
 * trial: ranks=2 */
#include "../common.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

static struct sockaddr_in local(int port) {
    return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int port_of(int fd) {
    struct sockaddr_in at;
    socklen_t length = sizeof at;
    CHECK(getsockname(fd, (struct sockaddr *)&at, &length) == 0, "getsockname: %s", strerror(errno));
    return ntohs(at.sin_port);
}

static int option(int fd, int level, int name) {
    int value = -1;
    socklen_t length = sizeof value;
    CHECK(getsockopt(fd, level, name, &value, &length) == 0, "getsockopt: %s", strerror(errno));
    return value;
}

static void set(int fd, int level, int name, int value) {
    CHECK(setsockopt(fd, level, name, &value, sizeof value) == 0, "setsockopt: %s", strerror(errno));
}

static int made(int family, int type) {
    int fd = socket(family, type, 0);
    CHECK(fd >= 0, "socket: %s", strerror(errno));
    return fd;
}

static void joined(int fd, int port) {
    struct sockaddr_in at = local(port);
    CHECK(connect(fd, (struct sockaddr *)&at, sizeof at) == 0, "connect: %s", strerror(errno));
}

static void named(int fd) {
    struct sockaddr_in at = local(0);
    CHECK(bind(fd, (struct sockaddr *)&at, sizeof at) == 0, "bind: %s", strerror(errno));
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

/* A client comes to a socket that listens. */
static void serves(int listener, int client, const void *at, socklen_t length) {
    CHECK(connect(client, at, length) == 0, "connect to what listens: %s", strerror(errno));
    int accepted = accept(listener, NULL, NULL);
    char byte = 0;
    CHECK(accepted >= 0 && write(client, "y", 1) == 1 && read(accepted, &byte, 1) == 1 && byte == 'y', "accept: %s", strerror(errno));
    close(client);
    close(accepted);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int server = atoi(getenv("OUTWARD_PORT"));
    struct sockaddr_un path = {.sun_family = AF_UNIX}, own = {.sun_family = AF_UNIX};
    snprintf(path.sun_path, sizeof path.sun_path, "%s", getenv("OUTWARD_PATH"));
    snprintf(own.sun_path, sizeof own.sun_path, "%s.%d", getenv("OUTWARD_PATH"), trial_rank);

    int tcp = made(AF_INET, SOCK_STREAM), unix_stream = made(AF_UNIX, SOCK_STREAM), fresh = made(AF_INET, SOCK_STREAM | SOCK_NONBLOCK);
    joined(tcp, server);
    set(tcp, SOL_SOCKET, SO_KEEPALIVE, 1);
    set(tcp, IPPROTO_TCP, TCP_KEEPIDLE, 77);
    CHECK(connect(unix_stream, (struct sockaddr *)&path, sizeof path) == 0, "connect: %s", strerror(errno));
    set(fresh, IPPROTO_TCP, TCP_NODELAY, 1);
    talks(tcp, "TCP");
    talks(unix_stream, "Unix");
    /* Bytes that nobody reads before the checkpoint. */
    CHECK(write(tcp, "z", 1) == 1, "write: %s", strerror(errno));

    int listener = made(AF_INET, SOCK_STREAM), unix_listener = made(AF_UNIX, SOCK_STREAM);
    named(listener);
    CHECK(listen(listener, 3) == 0, "listen: %s", strerror(errno));
    int at = port_of(listener);
    CHECK(bind(unix_listener, (struct sockaddr *)&own, sizeof own) == 0 && listen(unix_listener, 3) == 0, "bind: %s", strerror(errno));

    int to = made(AF_INET, SOCK_DGRAM), from = made(AF_INET, SOCK_DGRAM);
    named(to);
    joined(from, port_of(to));
    set(from, IPPROTO_IP, IP_TTL, 33);

    int set_of = epoll_create1(0);
    struct epoll_event wants = {.events = EPOLLIN, .data.u64 = 7}, told[4];
    CHECK(epoll_ctl(set_of, EPOLL_CTL_ADD, unix_stream, &wants) == 0, "epoll_ctl: %s", strerror(errno));
    CHECK(epoll_wait(set_of, told, 4, 0) == 0, "it is ready before");

    trial_hold();
    char name[4096];
    snprintf(name, sizeof name, "%s/restarted", getenv("TRIAL_DIR"));
    if (access(name, F_OK) == 0) {
        CHECK(epoll_wait(set_of, told, 4, 1000) == 1 && told[0].data.u64 == 7 && told[0].events & EPOLLHUP, "the set says nothing");
        is_lost(tcp, "TCP");
        is_lost(unix_stream, "Unix");
    } else {
        char byte = 0;
        CHECK(recv(tcp, &byte, 1, 0) == 1 && byte == 'z', "the byte is lost: %s", strerror(errno));
        talks(tcp, "TCP");
        talks(unix_stream, "Unix");
    }
    CHECK(option(tcp, SOL_SOCKET, SO_KEEPALIVE) == 1 && option(tcp, IPPROTO_TCP, TCP_KEEPIDLE) == 77, "options of the connection");
    CHECK(option(fresh, IPPROTO_TCP, TCP_NODELAY) == 1 && fcntl(fresh, F_GETFL) & O_NONBLOCK, "options of the new socket");
    CHECK(option(from, IPPROTO_IP, IP_TTL) == 33, "options of datagrams");
    CHECK(port_of(listener) == at, "the port is %d", port_of(listener));
    struct sockaddr_in here = local(at);
    serves(listener, made(AF_INET, SOCK_STREAM), &here, sizeof here);
    serves(unix_listener, made(AF_UNIX, SOCK_STREAM), &own, sizeof own);
    char byte = 0;
    CHECK(send(from, "w", 1, 0) == 1 && recv(to, &byte, 1, 0) == 1 && byte == 'w', "datagram: %s", strerror(errno));
    fcntl(fresh, F_SETFL, 0);
    joined(fresh, server);
    talks(fresh, "a new connection");
    unlink(own.sun_path);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
