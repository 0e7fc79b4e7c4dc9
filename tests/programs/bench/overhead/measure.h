/* What is measured, and what the measures share. A measure repeats its operation and gives back one figure, the same on
 * every rank: nanoseconds a call unless it says otherwise, of the rank that took longest. */
#ifndef MEASURE_H
#define MEASURE_H

#include <mpi.h>

struct measure {
    const char *name;
    /* `size`: bytes of a message (or whatever the measure says); `calls`: how often. */
    double (*run)(int size, int calls);
};

/* One table a file; each ends with a measure without a name. */
extern const struct measure blocking_collectives[], nonblocking_collectives[], overlaps[], messages[], local_calls[],
    spectral_steps[];

extern int rank, ranks;

/* Seconds on the clock that never goes back. */
double now(void);

/* The longest of all ranks' times, as nanoseconds a call. */
double slowest(double seconds, int calls);

/* Room for messages: `ranks` blocks of `size` bytes each, touched; the same for as long as the size does not grow. */
enum { OUT, IN, BUFFERS };
char *room(int which, int size);

/* Calls before the ones that count. */
static inline int warming(int calls) { return calls / 8 + 2; }

/* A measure's body: so many calls, after some that do not count. */
#define REPEATED(calls, call) \
    do { \
        for (int i = 0; i < warming(calls); i++) call; \
        MPI_Barrier(MPI_COMM_WORLD); \
        double begun = now(); \
        for (int i = 0; i < (calls); i++) call; \
        return slowest(now() - begun, calls); \
    } while (0)

#endif
