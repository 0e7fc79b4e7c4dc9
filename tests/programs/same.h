/* What the programs that are compared with themselves share: every rank says what it got, a line for each thing. */
#pragma once
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

static inline void begin(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

/* "RANK what: numbers" */
static inline void say_numbers(const char *what, const int *numbers, int count) {
    char line[1024];
    int used = snprintf(line, sizeof line, "%d %s:", rank, what);
    for (int i = 0; i < count && used < (int)sizeof line - 16; i++)
        used += snprintf(line + used, sizeof line - used, " %d", numbers[i]);
    puts(line);
}

static inline void say(const char *what, long long number) {
    printf("%d %s: %lld\n", rank, what, number);
}

/* The class of an error: codes may differ, classes must not. */
static inline void say_class(const char *what, int code) {
    int class = -1;
    MPI_Error_class(code, &class);
    say(what, class);
}
