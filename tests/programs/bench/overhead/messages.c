/* Messages between rank 0 and rank 1; other ranks look on. */
#include "measure.h"

enum { TAG = 7, WINDOW = 64 };

static void send(int size) { MPI_Send(room(OUT, size), size, MPI_BYTE, 1 - rank, TAG, MPI_COMM_WORLD); }

static void receive(int size) {
    MPI_Recv(room(IN, size), size, MPI_BYTE, 1 - rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* There and back. */
static void ping_pong(int size) {
    if (rank == 0) send(size), receive(size);
    if (rank == 1) receive(size), send(size);
}

/* One way of a message that goes to and fro. */
static double latency(int size, int calls) {
    for (int i = 0; i < warming(calls); i++) ping_pong(size);
    MPI_Barrier(MPI_COMM_WORLD);
    double begun = now();
    for (int i = 0; i < calls; i++) ping_pong(size);
    return slowest(now() - begun, calls) / 2;
}

static void begin_window(int size, MPI_Request *requests) {
    for (int i = 0; i < WINDOW; i++) {
        if (rank == 0) MPI_Isend(room(OUT, size), size, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &requests[i]);
        if (rank == 1) MPI_Irecv(room(IN, size), size, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &requests[i]);
    }
}

/* A window of messages one way, all completed at once, then an answer. */
static void window(int size) {
    MPI_Request requests[WINDOW];
    if (rank > 1) return;
    begin_window(size, requests);
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    if (rank == 0) receive(4);
    if (rank == 1) send(4);
}

/* The same with calls that block. */
static void window_one_by_one(int size) {
    for (int i = 0; i < WINDOW; i++) {
        if (rank == 0) send(size);
        if (rank == 1) receive(size);
    }
    if (rank == 0) receive(4);
    if (rank == 1) send(4);
}

/* Nanoseconds a message; `calls` counts windows. */
static double streamed(void (*one)(int), int size, int calls) {
    for (int i = 0; i < warming(calls); i++) one(size);
    MPI_Barrier(MPI_COMM_WORLD);
    double begun = now();
    for (int i = 0; i < calls; i++) one(size);
    return slowest(now() - begun, calls) / WINDOW;
}

static double stream(int size, int calls) { return streamed(window, size, calls); }
static double one_by_one(int size, int calls) { return streamed(window_one_by_one, size, calls); }

const struct measure messages[] = {
    {"latency", latency},
    {"stream", stream},
    {"one-by-one", one_by_one},
    {0},
};
