/* A spectral program: steps of the heat equation on a periodic square, in Fourier space. Each step transforms a field whose
 * rows are spread over the ranks there and back, which takes two transposes by MPI_Alltoall, and sums what is left by
 * MPI_Allreduce.
 *
 * Heat flows, none is lost: the field's mean stays what it was, and the program ends where it does not.
 */
#include "measure.h"
#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef double complex number;

static struct {
    int edge, rows;
    number *field, *packed, *roots;
} grid;

static void refuse(const char *why) {
    if (rank == 0) fprintf(stderr, "spectral: %s\n", why);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* A field with a few waves in it, on `edge` x `edge` points. */
static void fill(int edge) {
    if (edge % ranks || edge & (edge - 1)) refuse("the edge is a power of two that the ranks divide");
    grid.edge = edge;
    grid.rows = edge / ranks;
    size_t points = (size_t)grid.rows * edge;
    grid.field = realloc(grid.field, points * sizeof(number));
    grid.packed = realloc(grid.packed, points * sizeof(number));
    grid.roots = realloc(grid.roots, edge / 2 * sizeof(number));
    if (!grid.field || !grid.packed || !grid.roots) refuse("no memory");
    for (int k = 0; k < edge / 2; k++) grid.roots[k] = cexp(-2 * M_PI * I * k / edge);
    for (int row = 0; row < grid.rows; row++)
        for (int x = 0; x < edge; x++) {
            double down = 2 * M_PI * (rank * grid.rows + row) / edge, across = 2 * M_PI * x / edge;
            grid.field[(size_t)row * edge + x] = 1 + cos(3 * across) * sin(2 * down) + 0.5 * cos(17 * down - across);
        }
}

static void put_in_bit_reversed_order(number *line) {
    for (int from = 1, to = 0; from < grid.edge; from++) {
        int bit = grid.edge >> 1;
        for (; to & bit; bit >>= 1) to ^= bit;
        to |= bit;
        if (from < to) {
            number kept = line[from];
            line[from] = line[to];
            line[to] = kept;
        }
    }
}

/* The transform of one line in place (radix 2, Cooley and Tukey), or its inverse without the division. */
static void transform(number *line, int inverse) {
    put_in_bit_reversed_order(line);
    for (int half = 1, stride = grid.edge / 2; half < grid.edge; half *= 2, stride /= 2)
        for (int start = 0; start < grid.edge; start += 2 * half)
            for (int k = 0; k < half; k++) {
                number root = inverse ? conj(grid.roots[k * stride]) : grid.roots[k * stride];
                number *low = &line[start + k], *high = low + half, odd = *high * root;
                *high = *low - odd;
                *low += odd;
            }
}

static void transform_rows(int inverse) {
    for (int row = 0; row < grid.rows; row++) transform(&grid.field[(size_t)row * grid.edge], inverse);
}

/* Rows become columns, over all ranks: each block is turned before it is sent. */
static void transpose(void) {
    int rows = grid.rows, edge = grid.edge, block = rows * rows;
    for (int to = 0; to < ranks; to++)
        for (int x = 0; x < rows; x++)
            for (int row = 0; row < rows; row++)
                grid.packed[to * block + x * rows + row] = grid.field[row * edge + to * rows + x];
    /* Two doubles a number. */
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, grid.packed, 2 * block, MPI_DOUBLE, MPI_COMM_WORLD);
    for (int from = 0; from < ranks; from++)
        for (int x = 0; x < rows; x++)
            for (int row = 0; row < rows; row++)
                grid.field[x * edge + from * rows + row] = grid.packed[from * block + x * rows + row];
}

static double wave(int index) { return index < grid.edge / 2 ? index : index - grid.edge; }

/* What a moment leaves of each wave; and the division that the inverse lacks. */
static void decay(void) {
    double share = 1.0 / ((double)grid.edge * grid.edge);
    for (int row = 0; row < grid.rows; row++)
        for (int x = 0; x < grid.edge; x++) {
            double down = wave(rank * grid.rows + row), across = wave(x);
            grid.field[(size_t)row * grid.edge + x] *= share * exp(-1e-4 * (down * down + across * across));
        }
}

static double mean(void) {
    double mine = 0, all;
    size_t points = (size_t)grid.rows * grid.edge;
    for (size_t point = 0; point < points; point++) mine += creal(grid.field[point]);
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all / ((double)grid.edge * grid.edge);
}

static void step(void) {
    transform_rows(0);
    transpose();
    transform_rows(0);
    decay();
    transform_rows(1);
    transpose();
    transform_rows(1);
    if (fabs(mean() - 1) > 1e-9) refuse("heat was lost");
}

/* `size`: points along an edge; nanoseconds a step. */
static double spectral(int size, int calls) {
    fill(size);
    step();
    MPI_Barrier(MPI_COMM_WORLD);
    double begun = now();
    for (int i = 0; i < calls; i++) step();
    return slowest(now() - begun, calls);
}

const struct measure spectral_steps[] = {{"spectral", spectral}, {0}};
