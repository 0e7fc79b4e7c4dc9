/* Nearly as many descriptors as the program may have: files that look alike, counters, pipes, socket pairs, duplicates, an epoll set. A checkpoint needs few more.
 * trial: ranks=2 */
#include "../common.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define GROUPS 150
#define SPARE 24

struct group {
    int file, twin, counter, pipe[2], pair[2];
};

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    static struct group groups[GROUPS];
    char path[PATH_MAX];
    trial_own_file(path, sizeof path, "many");
    int last = -1, set = epoll_create1(0);
    for (int i = 0; i < GROUPS; i++) {
        struct group *group = &groups[i];
        group->file = open(path, O_RDWR | O_CREAT, 0600);
        group->counter = eventfd(0, EFD_NONBLOCK);
        uint64_t count = (uint64_t)i + 1;
        CHECK(write(group->counter, &count, 8) == 8, "a counter: %s", strerror(errno));
        CHECK(pipe(group->pipe) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, group->pair) == 0, "%s", strerror(errno));
        CHECK(write(group->pipe[1], &i, sizeof i) == sizeof i && write(group->pair[0], &i, sizeof i) == sizeof i, "%s", strerror(errno));
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)i};
        CHECK(epoll_ctl(set, EPOLL_CTL_ADD, group->counter, &event) == 0, "%s", strerror(errno));
        last = group->twin = dup(group->file);
        CHECK(lseek(group->file, i, SEEK_SET) == i, "%s", strerror(errno));
    }
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = (rlim_t)last + SPARE;
    CHECK(last > 0 && setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit: %s", strerror(errno));
    trial_hold();
    for (int i = 0; i < GROUPS; i++) {
        struct group *group = &groups[i];
        int from_pipe = -1, from_pair = -1;
        uint64_t count = 0;
        CHECK(lseek(group->file, 0, SEEK_CUR) == i && lseek(group->twin, 1, SEEK_CUR) == i + 1, "file %d", i);
        CHECK(lseek(group->file, 0, SEEK_CUR) == i + 1, "file %d and its duplicate are two", i);
        CHECK(read(group->counter, &count, 8) == 8 && count == (uint64_t)i + 1, "counter %d: %llu", i, (unsigned long long)count);
        CHECK(read(group->pipe[0], &from_pipe, sizeof from_pipe) == sizeof from_pipe && from_pipe == i, "pipe %d", i);
        CHECK(read(group->pair[1], &from_pair, sizeof from_pair) == sizeof from_pair && from_pair == i, "pair %d", i);
    }
    struct epoll_event event;
    CHECK(epoll_wait(set, &event, 1, 0) == 0, "a counter that has been read is ready");
    uint64_t one = 1;
    CHECK(write(groups[77].counter, &one, 8) == 8 && epoll_wait(set, &event, 1, 0) == 1 && event.data.u32 == 77, "the set tells of another");
    return trial_finish();
}
