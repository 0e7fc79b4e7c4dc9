/* Pipes, counters, timers, poll sets and other descriptors without a file. */
#include "feature.h"
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>

static int pipe_full[2];
CARRIED(pipe_with_bytes)
SET(pipe_with_bytes) {
    DOES(pipe(pipe_full));
    DOES(write(pipe_full[1], "under way", 9));
}
AFTER(pipe_with_bytes) { reads(pipe_full[0], "under way"); }

static int pipe_big[2];
CARRIED(pipe_of_another_size)
SET(pipe_of_another_size) {
    DOES(pipe(pipe_big));
    DOES(fcntl(pipe_big[1], F_SETPIPE_SZ, 1 << 18));
    static char bytes[200000];
    trial_fill(bytes, sizeof bytes, 3);
    CHECK(write(pipe_big[1], bytes, sizeof bytes) == sizeof bytes, "%s", strerror(errno));
}
AFTER(pipe_of_another_size) {
    static char bytes[200000];
    size_t got = 0;
    CHECK(fcntl(pipe_big[0], F_GETPIPE_SZ) == 1 << 18, "%d", fcntl(pipe_big[0], F_GETPIPE_SZ));
    while (got < sizeof bytes) {
        ssize_t more = read(pipe_big[0], bytes + got, sizeof bytes - got);
        if (more <= 0) break;
        got += (size_t)more;
    }
    CHECK(got == sizeof bytes && trial_differs(bytes, sizeof bytes, 3) < 0, "%zu bytes", got);
}

static int pipe_packets[2];
CARRIED(pipe_of_packets)
SET(pipe_of_packets) {
    DOES(pipe2(pipe_packets, O_DIRECT | O_NONBLOCK));
    DOES(write(pipe_packets[1], "one", 3));
    DOES(write(pipe_packets[1], "second", 6));
}
AFTER(pipe_of_packets) {
    char got[32] = "";
    CHECK(read(pipe_packets[0], got, 32) == 3 && memcmp(got, "one", 3) == 0, "'%s'", got);
    CHECK(read(pipe_packets[0], got, 32) == 6 && memcmp(got, "second", 6) == 0, "'%s'", got);
    CHECK(read(pipe_packets[0], got, 32) == -1 && errno == EAGAIN, "%s", strerror(errno));
}

static int pipe_widow;
CARRIED(pipe_without_a_writer)
SET(pipe_without_a_writer) {
    int ends[2];
    DOES(pipe(ends));
    DOES(write(ends[1], "last", 4));
    close(ends[1]);
    pipe_widow = ends[0];
}
AFTER(pipe_without_a_writer) {
    reads(pipe_widow, "last");
    char byte;
    CHECK(read(pipe_widow, &byte, 1) == 0, "no end: %s", strerror(errno));
}

static int pipe_orphan;
CARRIED(pipe_without_a_reader)
SET(pipe_without_a_reader) {
    int ends[2];
    DOES(pipe(ends));
    close(ends[0]);
    pipe_orphan = ends[1];
}
AFTER(pipe_without_a_reader) {
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    sigprocmask(SIG_BLOCK, &set, &before);
    CHECK(write(pipe_orphan, "x", 1) == -1 && errno == EPIPE, "%s", strerror(errno));
    struct timespec now = {0, 0};
    sigtimedwait(&set, NULL, &now);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

static int counter_plain;
CARRIED(counter)
SET(counter) { DOES(counter_plain = eventfd(77, EFD_NONBLOCK)); }
AFTER(counter) {
    uint64_t value = 0;
    CHECK(read(counter_plain, &value, 8) == 8 && value == 77, "%d", (int)value);
    CHECK(read(counter_plain, &value, 8) == -1 && errno == EAGAIN, "%s", strerror(errno));
}

static int counter_semaphore;
CARRIED(counter_as_semaphore)
SET(counter_as_semaphore) { DOES(counter_semaphore = eventfd(3, EFD_SEMAPHORE | EFD_NONBLOCK)); }
AFTER(counter_as_semaphore) {
    uint64_t value = 0;
    for (int i = 0; i < 3; i++) CHECK(read(counter_semaphore, &value, 8) == 8 && value == 1, "%d", (int)value);
    CHECK(read(counter_semaphore, &value, 8) == -1, "a fourth");
}

static int timer_periodic;
CARRIED(timer_descriptor_periodic)
SET(timer_descriptor_periodic) {
    struct itimerspec every = {{0, 20000000}, {0, 20000000}};
    DOES(timer_periodic = timerfd_create(CLOCK_MONOTONIC, 0));
    DOES(timerfd_settime(timer_periodic, 0, &every, NULL));
    usleep(50000); /* an expiry waits to be read */
}
AFTER(timer_descriptor_periodic) {
    uint64_t count = 0;
    for (int i = 0; i < 3; i++) CHECK(read(timer_periodic, &count, 8) == 8 && count > 0, "%s", strerror(errno));
    struct itimerspec left;
    DOES(timerfd_gettime(timer_periodic, &left));
    CHECK(left.it_interval.tv_nsec == 20000000, "%ld", left.it_interval.tv_nsec);
}

static int timer_over;
CARRIED(timer_descriptor_that_has_expired)
SET(timer_descriptor_that_has_expired) {
    struct itimerspec once = {{0, 0}, {0, 1000000}};
    DOES(timer_over = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK));
    DOES(timerfd_settime(timer_over, 0, &once, NULL));
    usleep(20000);
}
AFTER(timer_descriptor_that_has_expired) {
    uint64_t count = 0;
    CHECK(read(timer_over, &count, 8) == 8 && count == 1, "%d: %s", (int)count, strerror(errno));
    CHECK(read(timer_over, &count, 8) == -1 && errno == EAGAIN, "again");
}

static int timer_far;
CARRIED(timer_descriptor_far_away)
SET(timer_descriptor_far_away) {
    struct itimerspec once = {{0, 0}, {3600, 0}};
    DOES(timer_far = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK));
    DOES(timerfd_settime(timer_far, 0, &once, NULL));
}
AFTER(timer_descriptor_far_away) {
    struct itimerspec left;
    DOES(timerfd_gettime(timer_far, &left));
    CHECK(left.it_value.tv_sec > 3000 && left.it_value.tv_sec <= 3600, "%ld s", (long)left.it_value.tv_sec);
}

static int timer_idle;
CARRIED(timer_descriptor_not_armed)
SET(timer_descriptor_not_armed) { DOES(timer_idle = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC)); }
AFTER(timer_descriptor_not_armed) {
    uint64_t count;
    CHECK(read(timer_idle, &count, 8) == -1 && errno == EAGAIN, "%s", strerror(errno));
    CHECK(fcntl(timer_idle, F_GETFD) == FD_CLOEXEC, "%d", fcntl(timer_idle, F_GETFD));
}

static int signals_read;
CARRIED(signal_descriptor)
SET(signal_descriptor) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN + 5);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    DOES(signals_read = signalfd(-1, &set, SFD_NONBLOCK));
    union sigval value = {.sival_int = 4711};
    CHECK(pthread_sigqueue(pthread_self(), SIGRTMIN + 5, value) == 0, "queue");
}
AFTER(signal_descriptor) {
    struct signalfd_siginfo info;
    CHECK(read(signals_read, &info, sizeof info) == sizeof info, "%s", strerror(errno));
    CHECK((int)info.ssi_signo == SIGRTMIN + 5 && info.ssi_int == 4711, "%d %d", info.ssi_signo, info.ssi_int);
    CHECK((pid_t)info.ssi_pid == getpid(), "sent by %d, this is %d", info.ssi_pid, getpid());
}

static int poll_set, polled[2];
CARRIED(poll_set_over_a_pipe)
SET(poll_set_over_a_pipe) {
    DOES(poll_set = epoll_create1(EPOLL_CLOEXEC));
    DOES(pipe(polled));
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = 0x123456789abcdef0};
    DOES(epoll_ctl(poll_set, EPOLL_CTL_ADD, polled[0], &event));
}
AFTER(poll_set_over_a_pipe) {
    struct epoll_event got;
    CHECK(epoll_wait(poll_set, &got, 1, 0) == 0, "something to read already");
    DOES(write(polled[1], "x", 1));
    CHECK(epoll_wait(poll_set, &got, 1, 1000) == 1 && got.data.u64 == 0x123456789abcdef0, "not told");
}

static int outer_set, inner_set, inner_counter;
CARRIED(poll_set_in_a_poll_set)
SET(poll_set_in_a_poll_set) {
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 8};
    DOES(outer_set = epoll_create1(0));
    DOES(inner_set = epoll_create1(0));
    DOES(inner_counter = eventfd(0, 0));
    DOES(epoll_ctl(inner_set, EPOLL_CTL_ADD, inner_counter, &event));
    event.data.u64 = 9;
    DOES(epoll_ctl(outer_set, EPOLL_CTL_ADD, inner_set, &event));
}
AFTER(poll_set_in_a_poll_set) {
    struct epoll_event got;
    CHECK(epoll_wait(outer_set, &got, 1, 0) == 0, "something to read already");
    uint64_t one = 1;
    DOES(write(inner_counter, &one, 8));
    CHECK(epoll_wait(outer_set, &got, 1, 1000) == 1 && got.data.u64 == 9, "not told");
}

static int set_once, once_counter;
CARRIED(poll_set_entry_that_was_used_up)
SET(poll_set_entry_that_was_used_up) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.u64 = 5}, got;
    DOES(set_once = epoll_create1(0));
    DOES(once_counter = eventfd(1, 0));
    DOES(epoll_ctl(set_once, EPOLL_CTL_ADD, once_counter, &event));
    CHECK(epoll_wait(set_once, &got, 1, 0) == 1, "not told");
}
AFTER(poll_set_entry_that_was_used_up) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.u64 = 6}, got;
    CHECK(epoll_wait(set_once, &got, 1, 0) == 0, "told twice");
    DOES(epoll_ctl(set_once, EPOLL_CTL_MOD, once_counter, &event));
    CHECK(epoll_wait(set_once, &got, 1, 1000) == 1 && got.data.u64 == 6, "not told again");
}

static int duplicate_high, duplicated;
CARRIED(duplicate_with_a_high_number)
SET(duplicate_with_a_high_number) {
    duplicated = own_file("duplicated", 0);
    DOES(duplicate_high = fcntl(duplicated, F_DUPFD_CLOEXEC, 700));
    DOES(lseek(duplicated, 4, SEEK_SET));
}
AFTER(duplicate_with_a_high_number) {
    CHECK(duplicate_high == 700 && fcntl(700, F_GETFD) == FD_CLOEXEC, "%d", duplicate_high);
    reads(700, "456");
    CHECK(lseek(duplicated, 0, SEEK_CUR) == 7, "they do not share their position");
    remove_file("duplicated");
}

static int memory_sealed;
CARRIED(memory_file_with_seals)
SET(memory_file_with_seals) {
    DOES(memory_sealed = memfd_create("sealed", MFD_ALLOW_SEALING));
    DOES(write(memory_sealed, "sealed", 6));
    DOES(fcntl(memory_sealed, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE));
}
AFTER(memory_file_with_seals) {
    CHECK(fcntl(memory_sealed, F_GET_SEALS) == (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), "%x", fcntl(memory_sealed, F_GET_SEALS));
    CHECK(pwrite(memory_sealed, "x", 1, 0) == -1 && errno == EPERM, "it can be written: %s", strerror(errno));
    DOES(lseek(memory_sealed, 0, SEEK_SET));
    reads(memory_sealed, "sealed");
}

static int memory_mapped_file;
static char *memory_mapped;
CARRIED(memory_file_that_is_mapped)
SET(memory_file_that_is_mapped) {
    DOES(memory_mapped_file = memfd_create("mapped", 0));
    DOES(ftruncate(memory_mapped_file, 8192));
    memory_mapped = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, memory_mapped_file, 0);
    CHECK(memory_mapped != MAP_FAILED, "%s", strerror(errno));
    trial_fill(memory_mapped, 8192, 21);
}
AFTER(memory_file_that_is_mapped) {
    CHECK(trial_differs(memory_mapped, 8192, 21) < 0, "contents");
    DOES(pwrite(memory_mapped_file, "through", 7, 100));
    CHECK(memcmp(memory_mapped + 100, "through", 7) == 0, "mapping and file have parted");
}

static int watched = -1;
CARRIED(watch_on_a_directory)
SET(watch_on_a_directory) {
    char path[PATH_MAX];
    trial_own_file(path, sizeof path, "watched");
    DOES(mkdir(path, 0700));
    DOES(watched = inotify_init1(IN_NONBLOCK));
    CHECK(inotify_add_watch(watched, path, IN_CREATE) == 1, "%s", strerror(errno));
}
AFTER(watch_on_a_directory) {
    char path[PATH_MAX], file[PATH_MAX + 8], events[4096] __attribute__((aligned(8)));
    trial_own_file(path, sizeof path, "watched");
    snprintf(file, sizeof file, "%s/new", path);
    int fd = open(file, O_CREAT | O_WRONLY, 0600);
    ssize_t bytes = read(watched, events, sizeof events);
    const struct inotify_event *event = (void *)events;
    CHECK(bytes > 0 && event->wd == 1 && strcmp(event->name, "new") == 0, "%zd: %s", bytes, strerror(errno));
    close(fd);
    unlink(file);
    rmdir(path);
}

static int flags_nonblocking[2];
CARRIED(flags_of_a_pipe)
SET(flags_of_a_pipe) {
    DOES(pipe(flags_nonblocking));
    DOES(fcntl(flags_nonblocking[0], F_SETFL, O_NONBLOCK));
    DOES(fcntl(flags_nonblocking[1], F_SETFD, FD_CLOEXEC));
}
AFTER(flags_of_a_pipe) {
    char byte;
    CHECK(read(flags_nonblocking[0], &byte, 1) == -1 && errno == EAGAIN, "%s", strerror(errno));
    CHECK((fcntl(flags_nonblocking[1], F_GETFL) & O_NONBLOCK) == 0, "the other end");
    CHECK(fcntl(flags_nonblocking[1], F_GETFD) == FD_CLOEXEC, "%d", fcntl(flags_nonblocking[1], F_GETFD));
}

static int nowhere[3];
CARRIED(devices_without_state)
SET(devices_without_state) {
    DOES(nowhere[0] = open("/dev/null", O_RDWR));
    DOES(nowhere[1] = open("/dev/zero", O_RDONLY));
    DOES(nowhere[2] = open("/dev/urandom", O_RDONLY | O_CLOEXEC));
}
AFTER(devices_without_state) {
    char bytes[8] = "xxxxxxx";
    CHECK(write(nowhere[0], bytes, 8) == 8 && read(nowhere[0], bytes, 8) == 0, "/dev/null");
    CHECK(read(nowhere[1], bytes, 8) == 8 && bytes[0] == 0 && bytes[7] == 0, "/dev/zero");
    CHECK(read(nowhere[2], bytes, 8) == 8, "/dev/urandom");
}

static int pair_stream[2];
CARRIED(socket_pair_with_bytes)
SET(socket_pair_with_bytes) {
    DOES(socketpair(AF_UNIX, SOCK_STREAM, 0, pair_stream));
    DOES(write(pair_stream[0], "to one", 6));
    DOES(write(pair_stream[1], "to zero", 7));
}
AFTER(socket_pair_with_bytes) {
    reads(pair_stream[1], "to one");
    reads(pair_stream[0], "to zero");
    DOES(write(pair_stream[0], "more", 4));
    reads(pair_stream[1], "more");
}

static int pair_packets[2];
CARRIED(socket_pair_of_datagrams)
SET(socket_pair_of_datagrams) {
    DOES(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair_packets));
    DOES(send(pair_packets[0], "first", 5, 0));
    DOES(send(pair_packets[0], "", 0, 0));
    DOES(send(pair_packets[0], "third", 5, 0));
}
AFTER(socket_pair_of_datagrams) {
    char got[32];
    CHECK(recv(pair_packets[1], got, 32, 0) == 5 && memcmp(got, "first", 5) == 0, "first");
    CHECK(recv(pair_packets[1], got, 32, 0) == 0, "an empty one");
    CHECK(recv(pair_packets[1], got, 32, 0) == 5 && memcmp(got, "third", 5) == 0, "third");
    CHECK(recv(pair_packets[1], got, 32, 0) == -1 && errno == EAGAIN, "a fourth");
}

static int pair_half[2];
CARRIED(socket_pair_half_closed)
SET(socket_pair_half_closed) {
    DOES(socketpair(AF_UNIX, SOCK_STREAM, 0, pair_half));
    DOES(write(pair_half[0], "end", 3));
    DOES(shutdown(pair_half[0], SHUT_WR));
}
AFTER(socket_pair_half_closed) {
    char byte;
    reads(pair_half[1], "end");
    CHECK(read(pair_half[1], &byte, 1) == 0, "no end");
    DOES(write(pair_half[1], "back", 4));
    reads(pair_half[0], "back");
}
