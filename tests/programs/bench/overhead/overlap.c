/* How much of a nonblocking collective operation goes on behind a computation, in percent:
 *
 *   100 * (1 - (together - computation) / alone)
 *
 * where `alone` is the operation begun and completed at once, `computation` takes about as long, and `together` is the
 * operation begun, then the computation, then the completion. All hidden: 100; none: 0; less where both disturb each other.
 *
 * It is a small difference of long times, so the three are measured in turn, in many short parts, and each is the median of
 * its parts: what disturbs the machine for a moment disturbs one part.
 */
#include "measure.h"
#include <stdlib.h>

typedef void begin_function(int size, MPI_Request *request);

static volatile double result;

/* Computes: one step waits for the one before. */
static void compute(long steps) {
    double x = result;
    for (long step = 0; step < steps; step++) x = x * 0.999999 + 1e-6;
    result = x;
}

/* Steps in a nanosecond; measured once, on the core that the rank stays on. */
static double steps_per_nanosecond(void) {
    static double speed;
    if (speed == 0) {
        const long steps = 2000000;
        compute(steps);
        double begun = now();
        compute(steps);
        speed = steps / ((now() - begun) * 1e9);
    }
    return speed;
}

/* Nanoseconds of an operation with a computation of so many steps between its beginning and its completion. */
static double timed(begin_function *begin, int size, int calls, long steps) {
    MPI_Request request;
    MPI_Barrier(MPI_COMM_WORLD);
    double begun = now();
    for (int i = 0; i < calls; i++) {
        begin(size, &request);
        if (steps) compute(steps);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    return slowest(now() - begun, calls);
}

static double timed_computation(int calls, long steps) {
    MPI_Barrier(MPI_COMM_WORLD);
    double begun = now();
    for (int i = 0; i < calls; i++) compute(steps);
    return slowest(now() - begun, calls);
}

static int by_size(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

enum { PARTS = 9 };

static double median(double *parts) {
    qsort(parts, PARTS, sizeof *parts, by_size);
    return parts[PARTS / 2];
}

static double overlap(begin_function *begin, int size, int calls) {
    double alone[PARTS], computation[PARTS], together[PARTS];
    int few = calls / PARTS + 1;
    long steps = timed(begin, size, warming(calls), 0) * steps_per_nanosecond() + 1;
    for (int part = 0; part < PARTS; part++) {
        alone[part] = timed(begin, size, few, 0);
        together[part] = timed(begin, size, few, steps);
        computation[part] = timed_computation(few, steps);
    }
    return 100 * (1 - (median(together) - median(computation)) / median(alone));
}

static void begin_bcast(int size, MPI_Request *request) {
    MPI_Ibcast(room(OUT, size), size, MPI_BYTE, 0, MPI_COMM_WORLD, request);
}

static void begin_alltoall(int size, MPI_Request *request) {
    MPI_Ialltoall(room(OUT, size), size, MPI_BYTE, room(IN, size), size, MPI_BYTE, MPI_COMM_WORLD, request);
}

static void begin_allgather(int size, MPI_Request *request) {
    MPI_Iallgather(room(OUT, size), size, MPI_BYTE, room(IN, size), size, MPI_BYTE, MPI_COMM_WORLD, request);
}

static void begin_allreduce(int size, MPI_Request *request) {
    MPI_Iallreduce(room(OUT, size), room(IN, size), size / 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD, request);
}

static double of_ibcast(int size, int calls) { return overlap(begin_bcast, size, calls); }
static double of_ialltoall(int size, int calls) { return overlap(begin_alltoall, size, calls); }
static double of_iallgather(int size, int calls) { return overlap(begin_allgather, size, calls); }
static double of_iallreduce(int size, int calls) { return overlap(begin_allreduce, size, calls); }

const struct measure overlaps[] = {
    {"overlap-ibcast", of_ibcast},
    {"overlap-ialltoall", of_ialltoall},
    {"overlap-iallgather", of_iallgather},
    {"overlap-iallreduce", of_iallreduce},
    {0},
};
