/* Descriptors: the numbers that come are the ones that would come natively, and closing everything hurts nobody. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static void check(const char *what, int fd) {
    printf("%s %s\n", what, fd >= 0 && fcntl(fd, F_GETFD) >= 0 ? "open" : strerror(errno));
}

int main(void) {
    int a = open("/dev/null", O_RDWR), pair[2], pipes[2];
    check("open", a);
    check("creat", creat("/tmp/stillpoint-descriptors-test", 0600));
    unlink("/tmp/stillpoint-descriptors-test");
    check("dup", dup(a));
    check("dupfd", fcntl(a, F_DUPFD, 100));
    check("cloexec", fcntl(a, F_DUPFD_CLOEXEC, 120));
    check("dup2", dup2(a, 200));
    check("dup3", dup3(a, 201, O_CLOEXEC));
    printf("dup2 of closed %d\n", dup2(999, 5) == -1 && errno == EBADF);
    printf("dup of closed %d\n", dup(999) == -1 && errno == EBADF);
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    check("socketpair", pair[1]);
    pipe2(pipes, O_CLOEXEC);
    check("pipe2", pipes[1]);
    check("epoll", epoll_create1(0));
    check("eventfd", eventfd(0, 0));
    check("timerfd", timerfd_create(CLOCK_MONOTONIC, 0));
    check("memfd", memfd_create("x", 0));
    int terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    unlockpt(terminal);
    int peer = ioctl(terminal, TIOCGPTPEER, O_RDWR | O_NOCTTY);
    check("terminal", peer);
    printf("close %d %d\n", close(peer), close(terminal));
    char space[CMSG_SPACE(2 * sizeof(int))] = {0}, one = 'x';
    struct iovec vector = {&one, 1};
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    struct cmsghdr *control = CMSG_FIRSTHDR(&message);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(2 * sizeof(int));
    memcpy(CMSG_DATA(control), (int[]){a, pipes[0]}, 2 * sizeof(int));
    sendmsg(pair[0], &message, 0);
    memset(space, 0, sizeof space);
    printf("received %d\n", (int)recvmsg(pair[1], &message, 0));
    int passed[2];
    memcpy(passed, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof passed);
    check("passed", passed[1]);
    printf("close passed %d %d\n", close(passed[0]), close(passed[1]));
    int server = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path + 1, 100, "stillpoint-test-%d", getpid());
    bind(server, (struct sockaddr *)&address, sizeof address);
    listen(server, 5);
    if (fork() == 0) {
        connect(client, (struct sockaddr *)&address, sizeof address);
        write(client, "hello", 5);
        _exit(0);
    }
    int accepted = accept(server, NULL, NULL);
    check("accept", accepted);
    char text[10] = {0};
    read(accepted, text, 5);
    printf("%s\n", text);
    wait(NULL);
    printf("close %d\n", close(accepted));
    printf("close again %d\n", close(accepted) == -1 && errno == EBADF);
    printf("close none %d\n", close(-1) == -1 && errno == EBADF);
    printf("open fails %d\n", open("/nonexistent", O_RDONLY) == -1 && errno == ENOENT);
    int first = open("/dev/null", O_RDONLY);
    for (int i = 3; i < 1024; i++) close(i);
    syscall(SYS_close_range, 3, ~0u, 0);
    printf("closed %d\n", fcntl(first, F_GETFD) == -1);
    check("after all", open("/dev/null", O_RDONLY));
    FILE *pipe_from = popen("echo from a helper", "r");
    char line[100];
    printf("%s", fgets(line, sizeof line, pipe_from));
    printf("pclose %d\n", pclose(pipe_from));
    printf("getpid %d\n", getpid() > 1);
    return 0;
}
