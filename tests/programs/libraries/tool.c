/* A tool that counts calls of MPI, as profilers do. Its functions stand before libmpi's, and call the next ones of that name, so that several tools make a chain.
 * Each copy of the file is a tool of its own: its file's name is the tool's. It counts what its constructor, the program and other tools call. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long reduced, sent, received, controlled, bytes;
static int level = 1;

static void *next(const char *name) {
    return dlsym(RTLD_NEXT, name);
}

__attribute__((constructor)) static void begin(void) {
    int is = -1;
    PMPI_Initialized(&is);
    if (is != 0) fprintf(stderr, "WRONG: MPI is initialised before MPI_Init\n");
}

int MPI_Allreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    int (*real)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm) = next("MPI_Allreduce");
    int size;
    PMPI_Type_size(type, &size);
    reduced += level;
    bytes += (long)size * count;
    return real(from, to, count, type, op, comm);
}

int MPI_Send(const void *from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
    int (*real)(const void *, int, MPI_Datatype, int, int, MPI_Comm) = next("MPI_Send");
    sent += level;
    return real(from, count, type, to, tag, comm);
}

int MPI_Recv(void *into, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status) {
    int (*real)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *) = next("MPI_Recv");
    received += level;
    return real(into, count, type, from, tag, comm, status);
}

/* As Darshan has it: a tool that defines a function of the profiling interface is no MPI. */
int PMPI_Init(int *argc, char ***argv) {
    int (*real)(int *, char ***) = next("PMPI_Init");
    return real(argc, argv);
}

int MPI_Pcontrol(const int wanted, ...) {
    int (*real)(int, ...) = next("MPI_Pcontrol");
    controlled++;
    level = wanted != 0;
    return real(wanted);
}

int MPI_Finalize(void) {
    Dl_info own;
    dladdr(&level, &own);
    const char *name = strrchr(own.dli_fname, '/');
    long mine[5] = {reduced, sent, received, controlled, bytes}, all[5];
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Reduce(mine, all, 5, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%s: %ld reductions, %ld sent, %ld received, %ld controls, %ld bytes\n", name ? name + 1 : own.dli_fname, all[0], all[1], all[2], all[3], all[4]);
    fflush(stdout);
    int (*real)(void) = next("MPI_Finalize");
    return real();
}
