/* Calls that a signal ends with EINTR, whatever its handler's flags: none of them may end early or fail. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1000LL + at.tv_nsec / 1000000;
}

static void check(const char *what, int right, long long since, long long least) {
    long long took = now() - since;
    printf("%s %s%s\n", what, right ? "right" : "WRONG", took < least ? " TOO EARLY" : "");
    if (!right) printf("  errno %d\n", errno);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

static void *later(void *fd) {
    usleep(150000);
    write(*(int *)fd, "x", 1);
    return NULL;
}

int main(void) {
    long long start = now();
    struct timespec wait = {0, 150000000}, rest;
    check("nanosleep", nanosleep(&wait, NULL) == 0, start, 150);
    start = now();
    check("nanosleep with rest", nanosleep(&wait, &rest) == 0, start, 150);
    start = now();
    check("usleep", usleep(120000) == 0, start, 120);
    start = now();
    check("clock_nanosleep", clock_nanosleep(CLOCK_MONOTONIC, 0, &wait, NULL) == 0, start, 150);
    start = now();
    check("poll", poll(NULL, 0, 150) == 0, start, 150);
    start = now();
    check("ppoll", ppoll(NULL, 0, &wait, NULL) == 0, start, 150);
    sigset_t none;
    sigfillset(&none);
    start = now();
    check("ppoll with mask", ppoll(NULL, 0, &(struct timespec){0, 150000000}, &none) == 0, start, 150);
    start = now();
    check("select", select(0, NULL, NULL, NULL, &(struct timeval){0, 150000}) == 0, start, 150);
    start = now();
    check("pselect", pselect(0, NULL, NULL, NULL, &(struct timespec){0, 150000000}, &none) == 0, start, 150);
    int epoll = epoll_create1(0);
    struct epoll_event event;
    start = now();
    check("epoll_wait", epoll_wait(epoll, &event, 1, 150) == 0, start, 150);
    start = now();
    check("epoll_pwait", epoll_pwait(epoll, &event, 1, 150, &none) == 0, start, 150);
    int semaphore = semget(IPC_PRIVATE, 1, 0600);
    struct sembuf take = {0, -1, 0};
    start = now();
    int result = semtimedop(semaphore, &take, 1, &wait);
    check("semtimedop", result == -1 && errno == EAGAIN, start, 150);
    semctl(semaphore, 0, IPC_RMID);
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 150000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    start = now();
    pthread_mutex_lock(&lock);
    check("condition", pthread_cond_timedwait(&never, &lock, &until) == ETIMEDOUT, start, 148);
    sigset_t usr1;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr1, NULL);
    start = now();
    result = sigtimedwait(&usr1, NULL, &wait);
    check("sigtimedwait", result == -1 && errno == EAGAIN, start, 150);
    int pair[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    pthread_t thread;
    pthread_create(&thread, NULL, later, &pair[0]);
    char byte;
    start = now();
    check("recv", recv(pair[1], &byte, 1, 0) == 1, start, 100);
    pthread_join(thread, NULL);
    struct timeval timeout = {0, 150000};
    setsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    start = now();
    result = recv(pair[1], &byte, 1, 0);
    check("recv with timeout", result == -1 && errno == EAGAIN, start, 140);
    pid_t child = fork();
    if (child == 0) { usleep(150000); kill(getppid(), SIGUSR1); usleep(50000); _exit(3); }
    sigfillset(&none);
    start = now();
    int status, signal;
    check("sigwait", sigwait(&usr1, &signal) == 0 && signal == SIGUSR1, start, 100);
    check("waitpid", waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3, start, 100);
    return 0;
}
