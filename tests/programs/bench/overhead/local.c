/* Calls that no other rank has a part in: of MPI, and of the system. Every rank makes them at once. */
#include "measure.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double comm_rank(int size, int calls) {
    int value;
    (void)size;
    REPEATED(calls, MPI_Comm_rank(MPI_COMM_WORLD, &value));
}

static double comm_size(int size, int calls) {
    int value;
    (void)size;
    REPEATED(calls, MPI_Comm_size(MPI_COMM_WORLD, &value));
}

static double wtime(int size, int calls) {
    (void)size;
    REPEATED(calls, MPI_Wtime());
}

static double iprobe(int size, int calls) {
    int found;
    (void)size;
    REPEATED(calls, MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE));
}

static double test_posted(MPI_Request *posted, int calls) {
    int index, found;
    MPI_Status status;
    REPEATED(calls, MPI_Testany(1, posted, &index, &found, &status));
}

/* As programs poll that look after their messages between two steps of their work. */
static double testany(int size, int calls) {
    MPI_Request posted;
    (void)size;
    MPI_Irecv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_SELF, &posted);
    double figure = test_posted(&posted, calls);
    MPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_SELF);
    MPI_Wait(&posted, MPI_STATUS_IGNORE);
    return figure;
}

/* A block, and its first page touched. */
static void allocate_and_free(size_t bytes) {
    volatile char *block = malloc(bytes);
    if (!block) MPI_Abort(MPI_COMM_WORLD, 1);
    block[0] = 1;
    free((void *)block);
}

/* `size`: KiB. Larger than malloc ever keeps (32 MiB): mapped and unmapped each time. */
static double malloc_free(int size, int calls) { REPEATED(calls, allocate_and_free((size_t)size * 1024)); }

static double read_clock(int size, int calls) {
    struct timespec time;
    (void)size;
    REPEATED(calls, clock_gettime(CLOCK_REALTIME, &time));
}

/* A file of this rank's own, gone from its directory already. */
static int scratch_file(void) {
    static int file = -1;
    if (file >= 0) return file;
    char path[] = "/tmp/stillpoint-bench.XXXXXX";
    file = mkstemp(path);
    if (file < 0) MPI_Abort(MPI_COMM_WORLD, 1);
    unlink(path);
    return file;
}

/* Over and over at the file's beginning: the cost of the call, not of a disk. */
static double file_write(int size, int calls) {
    int file = scratch_file();
    char *bytes = room(OUT, size);
    ssize_t written = 0;
    REPEATED(calls, written += pwrite(file, bytes, size, 0));
}

static void open_and_close(void) {
    int file = open("/dev/null", O_WRONLY);
    if (file < 0) MPI_Abort(MPI_COMM_WORLD, 1);
    close(file);
}

static double file_open(int size, int calls) {
    (void)size;
    REPEATED(calls, open_and_close());
}

const struct measure local_calls[] = {
    {"comm_rank", comm_rank},     {"comm_size", comm_size},   {"wtime", wtime},           {"iprobe", iprobe},
    {"malloc_free", malloc_free}, {"read_clock", read_clock}, {"file_write", file_write}, {"file_open", file_open},
    {"testany", testany},         {0},
};
