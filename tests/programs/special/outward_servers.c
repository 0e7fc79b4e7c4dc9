/* Servers and datagrams of a program that lets a restart lose its connections (`--sockets reset`): TCP in both families, a Unix socket with a path, one whose
 * path is gone, UDP with a peer and without. Clients are served before a suspend and after it, at the same names, with the same options.
 * trial: ranks=2 */
#include "../common.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

struct server { int fd, type; struct sockaddr_storage at; socklen_t length; const char *what; };

static struct server serve(const char *what, int family, int type, const void *at, socklen_t length) {
    struct server made = {.type = type, .length = sizeof made.at, .what = what};
    made.fd = socket(family, type, 0);
    CHECK(made.fd >= 0 && bind(made.fd, at, length) == 0, "%s: %s", what, strerror(errno));
    if (type == SOCK_STREAM) CHECK(listen(made.fd, 5) == 0, "%s: %s", what, strerror(errno));
    getsockname(made.fd, (void *)&made.at, &made.length);
    return made;
}

static int option(int fd, int level, int name) {
    int value = -1;
    socklen_t length = sizeof value;
    CHECK(getsockopt(fd, level, name, &value, &length) == 0, "getsockopt %d: %s", name, strerror(errno));
    return value;
}

/* A client says a word to it. */
static void serves(const struct server *it) {
    char word[8] = "";
    int client = socket(it->at.ss_family, it->type, 0), end = it->fd;
    CHECK(connect(client, (const void *)&it->at, it->length) == 0, "%s: connect: %s", it->what, strerror(errno));
    if (it->type == SOCK_STREAM) end = accept(it->fd, NULL, NULL);
    CHECK(send(client, "word", 4, 0) == 4 && recv(end, word, sizeof word, 0) == 4 && !memcmp(word, "word", 4), "%s: '%s': %s", it->what, word, strerror(errno));
    close(client);
    if (end != it->fd) close(end);
}

static void is_where_it_was(const struct server *it) {
    struct sockaddr_storage at = {0};
    socklen_t length = sizeof at;
    CHECK(getsockname(it->fd, (void *)&at, &length) == 0 && length == it->length && !memcmp(&at, &it->at, length), "%s: another name", it->what);
    CHECK(option(it->fd, SOL_SOCKET, SO_ACCEPTCONN) == (it->type == SOCK_STREAM), "%s: does it listen?", it->what);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 at6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct sockaddr_un path = {.sun_family = AF_UNIX}, gone = {.sun_family = AF_UNIX};
    snprintf(path.sun_path, sizeof path.sun_path, "%s/server.%d", getenv("TRIAL_DIR"), trial_rank);
    snprintf(gone.sun_path, sizeof gone.sun_path, "%s/gone.%d", getenv("TRIAL_DIR"), trial_rank);
    struct server all[] = {
        serve("TCP", AF_INET, SOCK_STREAM, &at, sizeof at),
        serve("TCP over IPv6", AF_INET6, SOCK_STREAM, &at6, sizeof at6),
        serve("Unix", AF_UNIX, SOCK_STREAM, &path, sizeof path),
        serve("UDP", AF_INET, SOCK_DGRAM, &at, sizeof at),
    };
    enum { SERVERS = sizeof all / sizeof *all };
    struct server nameless = serve("a path that is gone", AF_UNIX, SOCK_STREAM, &gone, sizeof gone);
    chmod(path.sun_path, 0610);
    unlink(gone.sun_path);
    int one = 1, five = 5, small = 5000, fresh = socket(AF_INET, SOCK_STREAM, 0), sends = socket(AF_INET, SOCK_DGRAM, 0), set = epoll_create1(0);
    setsockopt(all[0].fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &five, sizeof five);
    int deferred = option(all[0].fd, IPPROTO_TCP, TCP_DEFER_ACCEPT), room = option(all[0].fd, SOL_SOCKET, SO_RCVBUF);
    setsockopt(all[3].fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    int datagrams = option(all[3].fd, SOL_SOCKET, SO_RCVBUF);
    setsockopt(fresh, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    fcntl(all[2].fd, F_SETFL, O_NONBLOCK);
    CHECK(connect(sends, (void *)&all[3].at, all[3].length) == 0, "connect: %s", strerror(errno));
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 3}, client_told;
    CHECK(epoll_ctl(set, EPOLL_CTL_ADD, all[1].fd, &event) == 0, "epoll_ctl: %s", strerror(errno));
    for (int i = 0; i < SERVERS; i++) serves(&all[i]);
    /* The server's end of these is closed first, or not at all. */
    int first = socket(AF_INET, SOCK_STREAM, 0), open = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(connect(first, (void *)&all[0].at, all[0].length) == 0 && send(first, "x", 1, 0) == 1, "connect: %s", strerror(errno));
    close(accept(all[0].fd, NULL, NULL));
    CHECK(connect(open, (void *)&all[0].at, all[0].length) == 0 && send(open, "x", 1, 0) == 1 && accept(all[0].fd, NULL, NULL) >= 0, "connect: %s", strerror(errno));
    char told[64];
    snprintf(told, sizeof told, "%s/port.%d", getenv("TRIAL_DIR"), trial_rank);
    FILE *port = fopen(told, "w");
    CHECK(port && fprintf(port, "%d", ntohs(((struct sockaddr_in *)&all[0].at)->sin_port)) > 0 && fclose(port) == 0, "%s: %s", told, strerror(errno));

    trial_ready();
    trial_wait();

    struct stat about;
    CHECK(stat(path.sun_path, &about) == 0 && (about.st_mode & 0777) == 0610, "the mode is %o", (unsigned)about.st_mode & 0777);
    CHECK(stat(gone.sun_path, &about) == -1, "a removed path is there again");
    is_where_it_was(&nameless);
    CHECK(option(all[0].fd, IPPROTO_TCP, TCP_DEFER_ACCEPT) == deferred && option(all[0].fd, SOL_SOCKET, SO_RCVBUF) == room && option(all[3].fd, SOL_SOCKET, SO_RCVBUF) == datagrams, "options");
    CHECK(option(all[0].fd, SOL_SOCKET, SO_REUSEADDR) == 0, "SO_REUSEADDR");
    CHECK(option(fresh, IPPROTO_TCP, TCP_NODELAY) == 1 && connect(fresh, (void *)&all[0].at, all[0].length) == 0, "the one without a name: %s", strerror(errno));
    close(fresh);
    CHECK(accept(all[2].fd, NULL, NULL) == -1 && errno == EAGAIN, "accept: %s", strerror(errno));
    CHECK(epoll_wait(set, &client_told, 1, 0) == 0, "a client is told of that never came");
    for (int i = 0; i < SERVERS; i++) {
        is_where_it_was(&all[i]);
        if (i) serves(&all[i]);
    }
    char word[8];
    CHECK(send(sends, "more", 4, 0) == 4 && recv(all[3].fd, word, sizeof word, 0) == 4, "UDP with a peer: %s", strerror(errno));
    unlink(path.sun_path);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
