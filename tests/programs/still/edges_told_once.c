/* A poll set tells of a file once where it was asked so (EPOLLET): what it has told does not come again, what it has not told comes, once.
 * trial: ranks=2 */
#include "../common.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

static int set;

static void watch(int number, uint32_t events, uint32_t data) {
    struct epoll_event event = {.events = events, .data.u32 = data};
    CHECK(epoll_ctl(set, EPOLL_CTL_ADD, number, &event) == 0, "entry %u: %s", data, strerror(errno));
}

/* The entries that have something to tell, a bit each. */
static unsigned tells(void) {
    struct epoll_event got[32];
    unsigned found = 0;
    int count = epoll_wait(set, got, 32, 0);
    CHECK(count >= 0, "epoll_wait: %s", strerror(errno));
    for (int i = 0; i < count; i++) found |= 1u << got[i].data.u32;
    return found;
}

static void writes(int number) { CHECK(write(number, "x", 1) == 1, "write: %s", strerror(errno)); }

enum { TOLD, UNTOLD, OUT, BOTH, ONCE, FIRED, EMPTIED, ALONE, CLOSED, TIMER, COUNTER, EMPTY, LEVEL };

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int told[2], untold[2], emptied[2], alone[2], closed[2], empty[2], once[2], both[2];
    CHECK(pipe(told) == 0 && pipe(untold) == 0 && pipe(emptied) == 0 && pipe(alone) == 0 && pipe(closed) == 0 && pipe(empty) == 0
          && pipe(once) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, both) == 0, "pipes: %s", strerror(errno));
    int counter = eventfd(5, EFD_NONBLOCK), level = eventfd(1, EFD_NONBLOCK), fired = eventfd(1, EFD_NONBLOCK);
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    struct itimerspec soon = {.it_value.tv_nsec = 1};
    CHECK(timerfd_settime(timer, 0, &soon, NULL) == 0, "timer: %s", strerror(errno));
    usleep(1000);
    set = epoll_create1(0);
    watch(told[0], EPOLLIN | EPOLLET, TOLD);
    watch(told[1], EPOLLOUT | EPOLLET, OUT);
    watch(both[0], EPOLLIN | EPOLLOUT | EPOLLET, BOTH);
    watch(fired, EPOLLIN | EPOLLONESHOT | EPOLLET, FIRED);
    watch(emptied[0], EPOLLIN | EPOLLONESHOT, EMPTIED);
    watch(alone[0], EPOLLIN | EPOLLET | EPOLLEXCLUSIVE, ALONE);
    watch(closed[0], EPOLLIN | EPOLLET, CLOSED);
    watch(timer, EPOLLIN | EPOLLET, TIMER);
    watch(counter, EPOLLIN | EPOLLET, COUNTER);
    watch(empty[0], EPOLLIN | EPOLLET, EMPTY);
    watch(level, EPOLLIN, LEVEL);
    writes(told[1]), writes(emptied[1]), writes(alone[1]), writes(closed[1]), writes(both[1]);
    /* The number of this entry leads elsewhere from here on. */
    int kept = dup(closed[0]);
    dup2(level, closed[0]);
    unsigned all = 1u << TOLD | 1u << OUT | 1u << BOTH | 1u << FIRED | 1u << EMPTIED | 1u << ALONE | 1u << CLOSED | 1u << TIMER
                   | 1u << COUNTER | 1u << LEVEL;
    unsigned now = tells();
    CHECK(now == all, "told %#x, not %#x", now, all);
    now = tells();
    CHECK(now == 1u << LEVEL, "told %#x again", now);
    char byte;
    CHECK(read(emptied[0], &byte, 1) == 1, "read: %s", strerror(errno));
    watch(untold[0], EPOLLIN | EPOLLET, UNTOLD);
    watch(once[0], EPOLLIN | EPOLLET | EPOLLONESHOT, ONCE);
    writes(untold[1]), writes(once[1]);

    trial_hold();
    now = tells();
    CHECK(now == (1u << LEVEL | 1u << UNTOLD | 1u << ONCE), "told %#x", now);
    now = tells();
    CHECK(now == 1u << LEVEL, "told %#x twice", now);
    uint64_t one = 1;
    writes(told[1]), writes(untold[1]), writes(once[1]), writes(emptied[1]), writes(alone[1]), writes(closed[1]), writes(empty[1]), writes(both[1]);
    CHECK(write(counter, &one, 8) == 8 && write(fired, &one, 8) == 8, "write: %s", strerror(errno));
    now = tells();
    unsigned news = 1u << TOLD | 1u << UNTOLD | 1u << ALONE | 1u << CLOSED | 1u << EMPTY | 1u << BOTH | 1u << COUNTER | 1u << LEVEL;
    CHECK((now & ~(1u << OUT)) == news, "told %#x, not %#x", now, news);
    struct epoll_event again = {.events = EPOLLIN | EPOLLONESHOT, .data.u32 = EMPTIED};
    CHECK(epoll_ctl(set, EPOLL_CTL_MOD, emptied[0], &again) == 0 && tells() == (1u << LEVEL | 1u << EMPTIED), "armed again");
    CHECK(read(kept, &byte, 1) == 1 && read(timer, &one, 8) == 8 && one == 1, "what was not read");
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
