/* Files that are open twice, alike in everything that shows - file, mode, position - and yet two; beside duplicates, which are one.
 * trial: ranks=2 */
#include "../common.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>

#define KINDS 3

static int moves(int one, int other) {
    off_t before = lseek(one, 0, SEEK_CUR), others = lseek(other, 0, SEEK_CUR);
    CHECK(before == others, "positions %ld and %ld", (long)before, (long)others);
    CHECK(lseek(one, before + 3, SEEK_SET) == before + 3, "lseek");
    int moved = lseek(other, 0, SEEK_CUR) == before + 3;
    CHECK(lseek(one, before, SEEK_SET) == before, "lseek");
    return moved;
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    static const int modes[KINDS] = {O_RDONLY, O_RDWR, O_WRONLY | O_APPEND};
    int first[KINDS], second[KINDS], twin[KINDS];
    char path[PATH_MAX];
    trial_own_file(path, sizeof path, "alike");
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(write(file, "0123456789", 10) == 10, "write");
    for (int i = 0; i < KINDS; i++) {
        first[i] = open(path, modes[i]);
        twin[i] = dup(first[i]);
        second[i] = open(path, modes[i]);
        CHECK(moves(first[i], twin[i]) && !moves(first[i], second[i]), "natively");
    }
    int pipes[2], event = eventfd(0, EFD_NONBLOCK), like = eventfd(0, EFD_NONBLOCK), set = epoll_create1(0);
    CHECK(pipe(pipes) == 0, "pipe");
    int reader = dup(pipes[0]), copy = dup(event);
    struct epoll_event watched = {.events = EPOLLIN, .data = {.u32 = 77}};
    CHECK(epoll_ctl(set, EPOLL_CTL_ADD, event, &watched) == 0, "epoll_ctl");
    trial_hold();
    for (int i = 0; i < KINDS; i++) {
        CHECK(moves(first[i], twin[i]), "a duplicate no longer moves with mode %d", modes[i]);
        CHECK(!moves(first[i], second[i]), "a second opening moves with mode %d", modes[i]);
    }
    uint64_t one = 1, got = 0;
    CHECK(write(like, &one, 8) == 8 && epoll_wait(set, &watched, 1, 0) == 0, "another eventfd wakes");
    CHECK(write(copy, &one, 8) == 8 && epoll_wait(set, &watched, 1, 0) == 1 && watched.data.u32 == 77, "the eventfd does not wake");
    CHECK(read(event, &got, 8) == 8 && got == 1 && read(like, &got, 8) == 8 && got == 1, "eventfds");
    char byte = 'x';
    CHECK(write(pipes[1], "p", 1) == 1 && read(reader, &byte, 1) == 1 && byte == 'p', "the pipe's duplicate");
    CHECK(fcntl(pipes[0], F_SETFL, O_NONBLOCK) == 0 && fcntl(reader, F_GETFL) & O_NONBLOCK, "the pipe's duplicate has other flags");
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
