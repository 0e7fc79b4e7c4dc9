/* Socket pairs inside the process are kept, with what is under way in them: streams, datagrams and packets with their
 * bounds, duplicates, flags, options, ends that are shut and ends whose other end is closed.
 * trial: ranks=2 */
#include "../common.h"
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>

static void pair(int ends[2], int type) {
    CHECK(socketpair(AF_UNIX, type, 0, ends) == 0, "socketpair: %s", strerror(errno));
}

static void put(int end, const char *text) {
    ssize_t bytes = (ssize_t)strlen(text);
    CHECK(send(end, text, (size_t)bytes, MSG_NOSIGNAL) == bytes, "send '%s': %s", text, strerror(errno));
}

/* Exactly this is what the next read gives. */
static void expect(int end, const char *text) {
    char got[256] = "";
    ssize_t bytes = recv(end, got, sizeof got - 1, MSG_DONTWAIT);
    CHECK(bytes == (ssize_t)strlen(text) && strcmp(got, text) == 0, "%zd bytes '%s' instead of '%s': %s", bytes, got, text,
          bytes < 0 ? strerror(errno) : "");
}

static void expect_nothing(int end) {
    char got[8];
    CHECK(recv(end, got, sizeof got, MSG_DONTWAIT) == -1 && errno == EAGAIN, "something more has come: %s", strerror(errno));
}

static int option(int end, int name) {
    int value = -1;
    socklen_t bytes = sizeof value;
    getsockopt(end, SOL_SOCKET, name, &value, &bytes);
    return value;
}

static size_t stuff(int end, uint64_t seed) {
    char block[1000];
    size_t sent = 0;
    for (;; sent += sizeof block) {
        trial_fill(block, sizeof block, seed + sent);
        if (send(end, block, sizeof block, MSG_DONTWAIT) != sizeof block) return sent;
    }
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int stream[2], full[2], datagram[2], packet[2], quick[2], half[2], orphan[2], broken[2], orphaned_datagram[2];
    char text[64] = "";
    int room = 40000, one = 1;
    struct timeval soon = {0, 30000}, told;
    socklen_t bytes = sizeof told;

    pair(stream, SOCK_STREAM);
    put(stream[0], "down ");
    put(stream[0], "the line");
    put(stream[1], "and back");
    int again = dup(stream[0]);

    pair(full, SOCK_STREAM);
    CHECK(setsockopt(full[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room) == 0, "SO_SNDBUF");
    int buffer = option(full[0], SO_SNDBUF);
    size_t sent = stuff(full[0], (uint64_t)trial_rank);

    pair(datagram, SOCK_DGRAM);
    put(datagram[0], "one");
    put(datagram[0], "");
    put(datagram[0], "two and a bit");
    put(datagram[0], "");
    put(datagram[1], "the other way");

    pair(packet, SOCK_SEQPACKET | SOCK_CLOEXEC);
    put(packet[1], "first");
    put(packet[1], "second");

    pair(quick, SOCK_STREAM | SOCK_NONBLOCK);
    CHECK(setsockopt(quick[1], SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon) == 0, "SO_RCVTIMEO");
    CHECK(setsockopt(quick[1], SOL_SOCKET, SO_PASSCRED, &one, sizeof one) == 0, "SO_PASSCRED");
    CHECK(fcntl(quick[1], F_SETFL, 0) == 0, "fcntl");
    int set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 7}, got = {0};
    CHECK(epoll_ctl(set, EPOLL_CTL_ADD, stream[1], &event) == 0, "epoll_ctl: %s", strerror(errno));

    pair(half, SOCK_STREAM);
    put(half[0], "last words");
    shutdown(half[0], SHUT_WR);

    pair(orphan, SOCK_STREAM);
    put(orphan[1], "from one who is gone");
    close(orphan[1]);

    pair(broken, SOCK_STREAM);
    put(broken[0], "never read");
    close(broken[1]);

    pair(orphaned_datagram, SOCK_DGRAM);
    put(orphaned_datagram[1], "a letter");
    close(orphaned_datagram[1]);

    trial_hold();

    CHECK(epoll_wait(set, &got, 1, 1000) == 1 && got.data.u64 == 7, "the poll set says %d", (int)got.data.u64);
    CHECK(recv(stream[1], text, 7, 0) == 7 && memcmp(text, "down th", 7) == 0, "'%s'", text);
    put(again, "!");
    expect(stream[1], "e line!");
    expect_nothing(stream[1]);
    close(stream[0]);
    expect(again, "and back");
    put(again, "still open");
    expect(stream[1], "still open");
    close(again);
    CHECK(recv(stream[1], text, 1, 0) == 0, "the end does not come through");

    CHECK(option(full[0], SO_SNDBUF) == buffer, "buffer of %d instead of %d", option(full[0], SO_SNDBUF), buffer);
    char block[1000];
    for (size_t at = 0; at < sent; at += sizeof block) {
        CHECK(recv(full[1], block, sizeof block, MSG_WAITALL) == sizeof block, "short at %zu of %zu", at, sent);
        CHECK(trial_differs(block, sizeof block, (uint64_t)trial_rank + at) == -1, "another block at %zu", at);
    }
    expect_nothing(full[1]);
    CHECK(stuff(full[0], 0) <= 2 * sent, "more fits in than before");

    expect(datagram[1], "one");
    CHECK(recv(datagram[1], text, sizeof text, MSG_DONTWAIT) == 0, "no empty message");
    expect(datagram[1], "two and a bit");
    CHECK(recv(datagram[1], text, sizeof text, MSG_DONTWAIT) == 0, "no second empty message");
    expect_nothing(datagram[1]);
    expect(datagram[0], "the other way");
    put(datagram[0], "new");
    expect(datagram[1], "new");

    expect(packet[0], "first");
    expect(packet[0], "second");
    expect_nothing(packet[0]);
    CHECK(fcntl(packet[0], F_GETFD) == FD_CLOEXEC && fcntl(datagram[0], F_GETFD) == 0, "close on exec");

    CHECK(recv(quick[0], text, 1, 0) == -1 && errno == EAGAIN, "the end that does not block blocks");
    CHECK(fcntl(quick[1], F_GETFL) == O_RDWR, "flags %o", (unsigned)fcntl(quick[1], F_GETFL));
    double before = trial_seconds();
    CHECK(recv(quick[1], text, 1, 0) == -1 && errno == EAGAIN && trial_seconds() - before > 0.02, "no timeout");
    getsockopt(quick[1], SOL_SOCKET, SO_RCVTIMEO, &told, &bytes);
    CHECK(told.tv_sec == 0 && told.tv_usec > 20000 && told.tv_usec < 40000, "timeout of %ld", (long)told.tv_usec);
    CHECK(option(quick[1], SO_PASSCRED) == 1 && option(quick[0], SO_PASSCRED) == 0, "SO_PASSCRED");

    expect(half[1], "last words");
    CHECK(recv(half[1], text, 1, 0) == 0, "the shut end does not come through");
    put(half[1], "an answer");
    expect(half[0], "an answer");
    CHECK(send(half[0], "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE, "what was shut is open");

    expect(orphan[0], "from one who is gone");
    CHECK(recv(orphan[0], text, 1, 0) == 0, "the closed end does not come through");
    CHECK(send(orphan[0], "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE, "what was closed is open");
    CHECK(recv(broken[0], text, 1, 0) == -1 && errno == ECONNRESET, "no word of the bytes unread: %s", strerror(errno));
    expect(orphaned_datagram[0], "a letter");
    CHECK(send(orphaned_datagram[0], "x", 1, MSG_NOSIGNAL) == -1 && errno == ECONNREFUSED, "somebody is there: %s", strerror(errno));
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
