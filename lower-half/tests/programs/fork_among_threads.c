/* Threads that map memory, change handlers and make timers while another one forks: no child inherits their locks. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHILDREN 400

static volatile int over;

static void map_and_unmap(void) {
    void *room = mmap(NULL, 1 << 16, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED || munmap(room, 1 << 16) != 0) abort();
}

static void change_handler(void) {
    struct sigaction action = {.sa_handler = SIG_IGN};
    if (sigaction(SIGUSR1, &action, NULL) != 0) abort();
}

static void make_timer(void) {
    struct sigevent event = {.sigev_notify = SIGEV_NONE};
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 || timer_delete(timer) != 0) abort();
}

typedef void (*work)(void);
static void *repeat(void *pointer) {
    while (!over) (*(work *)pointer)();
    return NULL;
}

int main(void) {
    static work works[] = {map_and_unmap, change_handler, make_timer};
    pthread_t threads[3];
    int right = 0, status;
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, repeat, &works[i]);
    for (int round = 0; round < CHILDREN; round++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(30); /* One that waits for ever is no child of a right program. */
            for (int i = 0; i < 3; i++) works[i]();
            _exit(3);
        }
        right += waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 3;
    }
    over = 1;
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    printf("%d of %d children\n", right, CHILDREN);
    return 0;
}
