/* Pipes inside the process with bytes in them, event counters, memory files and a poll set over them are kept.
 * trial: ranks=2 */
#include "../common.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int ends[2], quick[2];
    char text[32] = "";
    CHECK(pipe(ends) == 0 && pipe2(quick, O_NONBLOCK | O_CLOEXEC) == 0, "pipe: %s", strerror(errno));
    CHECK(write(ends[1], "still in the pipe", 17) == 17, "write");
    int counter = eventfd(5, EFD_NONBLOCK), memory = memfd_create("numbers", 0), set = epoll_create1(0);
    CHECK(write(memory, "memory file", 11) == 11 && lseek(memory, 7, SEEK_SET) == 7, "memory file");
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 99}, got = {0};
    CHECK(epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event) == 0, "epoll_ctl: %s", strerror(errno));
    trial_hold();
    CHECK(epoll_wait(set, &got, 1, 1000) == 1 && got.data.u64 == 99, "the poll set says %d", (int)got.data.u64);
    CHECK(read(ends[0], text, 6) == 6 && memcmp(text, "still ", 6) == 0, "pipe: '%s'", text);
    CHECK(write(ends[1], "!", 1) == 1 && read(ends[0], text, 32) == 12 && memcmp(text, "in the pipe!", 12) == 0, "pipe: '%s'", text);
    CHECK(read(quick[0], text, 1) == -1 && errno == EAGAIN, "the empty pipe blocks or gives something");
    CHECK(fcntl(quick[1], F_GETFD) == FD_CLOEXEC, "flag of the pipe");
    uint64_t count = 0;
    CHECK(read(counter, &count, 8) == 8 && count == 5, "counter %d", (int)count);
    CHECK(read(memory, text, 4) == 4 && memcmp(text, "file", 4) == 0, "memory file '%s'", text);
    close(ends[1]);
    CHECK(read(ends[0], text, 1) == 0, "the pipe's end does not come through");
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
