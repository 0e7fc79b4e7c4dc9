/* Starts MPI and ends it: what a launch costs. With a number, rank 0 starts so many children in two ways meanwhile, and tells the median of each in
 * nanoseconds. */
#include <mpi.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

static pid_t forked(void) {
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    return child;
}

static pid_t spawned(void) {
    char *arguments[] = {"true", NULL};
    pid_t child;
    return posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ) ? -1 : child;
}

static int by_size(const void *one, const void *other) {
    long a = *(const long *)one, b = *(const long *)other;
    return (a > b) - (a < b);
}

static void measure(const char *name, pid_t (*start)(void), int count) {
    long *times = calloc(count, sizeof *times);
    for (int i = 0; i < count; i++) {
        long begun = now();
        int status = 1;
        if (waitpid(start(), &status, 0) < 0 || status) exit(1);
        times[i] = now() - begun;
    }
    qsort(times, count, sizeof *times, by_size);
    printf("%s %ld\n", name, times[count / 2]);
    free(times);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, count = argc > 1 ? atoi(argv[1]) : 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0 && count > 0) {
        measure("forked", forked, count);
        measure("spawned", spawned, count);
    }
    MPI_Finalize();
    return 0;
}
