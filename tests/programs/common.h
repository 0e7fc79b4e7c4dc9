/* What the self-checking programs share.
 *
 * A program sets one thing up, says that it is ready, and may go on when it sees the `go` file: before that it holds
 * the state that a checkpoint has to carry. The harness checkpoints (or suspends and restarts) it in between, then
 * creates `go`. After it, the program checks itself: it prints `OK <rank>` and ends with 0, or says on stderr what is
 * wrong and ends with 1.
 *
 *   $TRIAL_DIR/ready.<rank>   made by the program
 *   $TRIAL_DIR/go             made by the harness; always there where TRIAL_DIR is not set
 */
#ifndef TRIAL_COMMON_H
#define TRIAL_COMMON_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int trial_rank = -1;
static int trial_size = -1;
static int trial_failures = 0;

/* Says what is wrong if `condition` does not hold; the program goes on, to say what else is wrong. */
#define CHECK(condition, ...) \
    do { \
        if (!(condition)) trial_wrong(__FILE__, __LINE__, #condition, __VA_ARGS__); \
    } while (0)

/* The same for calls that return MPI_SUCCESS. */
#define MUST(call) CHECK((call) == MPI_SUCCESS, "%s", "an MPI error")

__attribute__((noinline)) static void trial_wrong(const char *file, int line, const char *condition, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    trial_failures++;
    if (trial_failures <= 10) fprintf(stderr, "WRONG rank %d: %s:%d: %s: %s\n", trial_rank, file, line, condition, text);
}

static void trial_path(char *path, size_t bytes, const char *name) {
    const char *directory = getenv("TRIAL_DIR");
    snprintf(path, bytes, "%s/%s", directory ? directory : "/nowhere", name);
}

/* A file of this rank's own in the trial's directory (the working directory where there is none). */
static inline void trial_own_file(char *path, size_t bytes, const char *name) {
    const char *directory = getenv("TRIAL_DIR");
    snprintf(path, bytes, "%s/%s.%d", directory ? directory : ".", name, trial_rank);
}

/* Says by a file of this rank's how far it has come. */
__attribute__((noinline)) static void trial_mark(const char *stage) {
    if (!getenv("TRIAL_DIR")) return;
    char name[32], path[PATH_MAX];
    snprintf(name, sizeof name, "%s.%d", stage, trial_rank);
    trial_path(path, sizeof path, name);
    int descriptor = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (descriptor < 0) {
        fprintf(stderr, "WRONG rank %d: cannot make %s: %s\n", trial_rank, path, strerror(errno));
        exit(1);
    }
    close(descriptor);
}

/* Tells the harness that this rank is where it wants to be checkpointed. */
static void trial_ready(void) {
    trial_mark("ready");
}

/* Whether the program may go on. */
__attribute__((noinline)) static int trial_go(void) {
    if (!getenv("TRIAL_DIR")) return 1;
    char path[PATH_MAX];
    trial_path(path, sizeof path, "go");
    int before = errno;
    int there = access(path, F_OK) == 0;
    errno = before;
    return there;
}

/* Waits for `go` outside MPI, mostly asleep. */
static void trial_wait(void) {
    while (!trial_go()) usleep(2000);
}

/* Ready, then waits. */
static inline void trial_hold(void) {
    trial_ready();
    trial_wait();
}

static inline double trial_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Keeps the processor busy without calling MPI or the kernel (but for the clock). */
static inline double trial_compute(double seconds) {
    double until = trial_seconds() + seconds, value = 1.0;
    while (trial_seconds() < until)
        for (int i = 0; i < 1000; i++) value = value * 1.0000001 + 1e-9;
    return value;
}

static void trial_know_ranks(void) {
    MPI_Comm_rank(MPI_COMM_WORLD, &trial_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &trial_size);
}

static inline void trial_start_threads(int *argc, char ***argv, int level) {
    int provided = -1;
    MPI_Init_thread(argc, argv, level, &provided);
    trial_know_ranks();
    CHECK(provided >= level, "thread level %d granted, %d asked for", provided, level);
}

/* With TRIAL_THREADS in the environment, as a program that may call MPI from every thread. */
static inline void trial_start(int *argc, char ***argv) {
    if (getenv("TRIAL_THREADS")) {
        trial_start_threads(argc, argv, MPI_THREAD_MULTIPLE);
        return;
    }
    MPI_Init(argc, argv);
    trial_know_ranks();
}

/* Ready on every rank, but `late` ones compute a little longer before they go on: so that a checkpoint that is asked for
 * meanwhile finds the others ahead of them. */
static inline void trial_ready_late(int late) {
    trial_ready();
    if (late) trial_compute(0.7);
}

/* Says OK if nothing was wrong. */
static inline int trial_outcome(void) {
    if (trial_failures) {
        fprintf(stderr, "WRONG rank %d: %d checks failed\n", trial_rank, trial_failures);
        return 1;
    }
    printf("OK %d\n", trial_rank);
    fflush(stdout);
    return 0;
}

/* Ends MPI, and says OK if nothing was wrong. */
static inline int trial_end(void) {
    MPI_Finalize();
    return trial_outcome();
}

/* Ends the program: says OK if nothing was wrong. Nobody is in MPI_Finalize before `go`, however it was let out of where
 * it was blocked. */
static inline int trial_finish(void) {
    trial_wait();
    return trial_end();
}

/* A repeatable value that no neighbouring arguments share (splitmix64). */
static inline uint64_t trial_mix(uint64_t value) {
    value += 0x9e3779b97f4a7c15u;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

static inline void trial_fill(void *buffer, size_t bytes, uint64_t seed) {
    unsigned char *at = (unsigned char *)buffer;
    for (size_t i = 0; i < bytes; i++) at[i] = (unsigned char)(trial_mix(seed + i / 8) >> (8 * (i % 8)));
}

/* The first byte that differs from what trial_fill wrote, or -1. */
static inline long trial_differs(const void *buffer, size_t bytes, uint64_t seed) {
    const unsigned char *at = (const unsigned char *)buffer;
    for (size_t i = 0; i < bytes; i++)
        if (at[i] != (unsigned char)(trial_mix(seed + i / 8) >> (8 * (i % 8)))) return (long)i;
    return -1;
}

#endif
