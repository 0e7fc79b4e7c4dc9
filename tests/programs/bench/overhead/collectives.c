/* Blocking and nonblocking collective operations, many in a row. */
#include "measure.h"

/* An operation begun and completed at once. */
#define COMPLETED(begin) (begin, MPI_Wait(&request, MPI_STATUS_IGNORE))

/* Alternating roots keep the ranks together: with one root alone it would run ahead of all others. */
#define ROOT (i % ranks)

static double barrier(int size, int calls) {
    (void)size;
    REPEATED(calls, MPI_Barrier(MPI_COMM_WORLD));
}

static double bcast(int size, int calls) {
    char *buffer = room(OUT, size);
    REPEATED(calls, MPI_Bcast(buffer, size, MPI_BYTE, ROOT, MPI_COMM_WORLD));
}

static double alltoall(int size, int calls) {
    char *out = room(OUT, size), *in = room(IN, size);
    REPEATED(calls, MPI_Alltoall(out, size, MPI_BYTE, in, size, MPI_BYTE, MPI_COMM_WORLD));
}

static double allgather(int size, int calls) {
    char *out = room(OUT, size), *in = room(IN, size);
    REPEATED(calls, MPI_Allgather(out, size, MPI_BYTE, in, size, MPI_BYTE, MPI_COMM_WORLD));
}

static double allreduce(int size, int calls) {
    char *out = room(OUT, size), *in = room(IN, size);
    REPEATED(calls, MPI_Allreduce(out, in, size / 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
}

static double allreduce_in_place(int size, int calls) {
    char *in = room(IN, size);
    REPEATED(calls, MPI_Allreduce(MPI_IN_PLACE, in, size / 4, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
}

/* `size` bytes for each rank. */
static double alltoall_in_place(int size, int calls) {
    char *in = room(IN, size * ranks);
    REPEATED(calls, MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, size, MPI_BYTE, MPI_COMM_WORLD));
}

static double ibarrier(int size, int calls) {
    MPI_Request request;
    (void)size;
    REPEATED(calls, COMPLETED(MPI_Ibarrier(MPI_COMM_WORLD, &request)));
}

static double ibcast(int size, int calls) {
    MPI_Request request;
    char *buffer = room(OUT, size);
    REPEATED(calls, COMPLETED(MPI_Ibcast(buffer, size, MPI_BYTE, ROOT, MPI_COMM_WORLD, &request)));
}

static double ialltoall(int size, int calls) {
    MPI_Request request;
    char *out = room(OUT, size), *in = room(IN, size);
    REPEATED(calls, COMPLETED(MPI_Ialltoall(out, size, MPI_BYTE, in, size, MPI_BYTE, MPI_COMM_WORLD, &request)));
}

static double iallgather(int size, int calls) {
    MPI_Request request;
    char *out = room(OUT, size), *in = room(IN, size);
    REPEATED(calls, COMPLETED(MPI_Iallgather(out, size, MPI_BYTE, in, size, MPI_BYTE, MPI_COMM_WORLD, &request)));
}

static double iallreduce(int size, int calls) {
    MPI_Request request;
    char *out = room(OUT, size), *in = room(IN, size);
    REPEATED(calls, COMPLETED(MPI_Iallreduce(out, in, size / 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request)));
}

const struct measure blocking_collectives[] = {
    {"barrier", barrier},     {"bcast", bcast}, {"alltoall", alltoall}, {"allgather", allgather},
    {"allreduce", allreduce}, {"allreduce_in_place", allreduce_in_place}, {"alltoall_in_place", alltoall_in_place}, {0},
};

const struct measure nonblocking_collectives[] = {
    {"ibarrier", ibarrier},     {"ibcast", ibcast}, {"ialltoall", ialltoall}, {"iallgather", iallgather},
    {"iallreduce", iallreduce}, {0},
};
