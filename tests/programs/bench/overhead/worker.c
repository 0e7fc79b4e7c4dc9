/* Measures what it is told to, one line at a time, and waits without using the processor in between: so several such jobs
 * can stand side by side and be measured in turn, a few milliseconds each.
 *
 *   mpirun -n 2 worker DIR                      rank N reads DIR/commands.N: lines NAME SIZE CALLS, or quit
 *   mpirun -n 2 worker --once NAME SIZE CALLS   one measure, for people
 *
 * Rank 0 prints one line for each measure: its figure.
 */
#define _GNU_SOURCE
#include "measure.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int rank, ranks;

static const struct measure *const TABLES[] = {blocking_collectives, nonblocking_collectives, overlaps,
                                               messages,             local_calls,             spectral_steps};

double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

double slowest(double seconds, int calls) {
    double longest;
    MPI_Allreduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return longest / calls * 1e9;
}

char *room(int which, int size) {
    static char *buffers[BUFFERS];
    static size_t have[BUFFERS];
    size_t bytes = (size_t)size * ranks;
    if (have[which] < bytes) {
        free(buffers[which]);
        buffers[which] = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
        if (!buffers[which]) MPI_Abort(MPI_COMM_WORLD, 1);
        memset(buffers[which], 1, bytes);
        have[which] = bytes;
    }
    return buffers[which];
}

/* A core of its own for each rank, natively and under Stillpoint alike. */
static void stay_on_one_core(void) {
    cpu_set_t allowed, mine;
    sched_getaffinity(0, sizeof allowed, &allowed);
    int nth = rank % CPU_COUNT(&allowed);
    for (int core = 0; core < CPU_SETSIZE; core++) {
        if (!CPU_ISSET(core, &allowed) || nth-- > 0) continue;
        CPU_ZERO(&mine);
        CPU_SET(core, &mine);
        sched_setaffinity(0, sizeof mine, &mine);
        return;
    }
}

static const struct measure *named(const char *name) {
    for (size_t table = 0; table < sizeof TABLES / sizeof *TABLES; table++)
        for (const struct measure *measure = TABLES[table]; measure->name; measure++)
            if (strcmp(measure->name, name) == 0) return measure;
    return NULL;
}

static void carry_out(const char *name, int size, int calls) {
    const struct measure *measure = named(name);
    if (!measure) {
        fprintf(stderr, "worker: no measure is called %s\n", name);
        MPI_Abort(MPI_COMM_WORLD, 2);
        return;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double figure = measure->run(size, calls);
    if (rank == 0) {
        printf("%.9g\n", figure);
        fflush(stdout);
    }
}

static void follow(const char *directory) {
    char path[4096], line[256], name[64];
    int size, calls;
    snprintf(path, sizeof path, "%s/commands.%d", directory, rank);
    FILE *commands = fopen(path, "r");
    if (!commands) {
        perror(path);
        MPI_Abort(MPI_COMM_WORLD, 2);
        return;
    }
    while (fgets(line, sizeof line, commands) && sscanf(line, "%63s %d %d", name, &size, &calls) == 3)
        carry_out(name, size, calls);
    fclose(commands);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    stay_on_one_core();
    if (argc == 5 && strcmp(argv[1], "--once") == 0) {
        carry_out(argv[2], atoi(argv[3]), atoi(argv[4]));
    } else if (argc == 2) {
        follow(argv[1]);
    } else {
        fprintf(stderr, "worker: DIR, or --once NAME SIZE CALLS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Finalize();
    return 0;
}
