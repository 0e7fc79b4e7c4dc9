/* Loads MPI by itself, as interpreters do (ctypes, LuaJIT's FFI): no other library of the program needs it. The first argument is the way: name, path, local,
 * deep, closed (loaded, closed and loaded again), late (from a second thread), twice (by name and by path), only (by path, and by no other name before). At the end MPI is opened by TRIAL_FURTHER too, if
 * that is set.
 * trial: ranks=2 flags=-Xlinker,--as-needed */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <mpi.h>
#include <pthread.h>

static struct {
    int (*init)(int *, char ***), (*rank)(MPI_Comm, int *), (*size)(MPI_Comm, int *), (*finalize)(void);
    int (*allreduce)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
    int (*init_thread)(int *, char ***, int, int *);
    MPI_Comm world;
} mpi;
#define MPI_Init mpi.init
#define MPI_Init_thread mpi.init_thread
#define MPI_Comm_rank mpi.rank
#define MPI_Comm_size mpi.size
#define MPI_Finalize mpi.finalize
#undef MPI_COMM_WORLD
#define MPI_COMM_WORLD mpi.world
#include "../common.h"

static void *library;

static void *load(void *arguments) {
    const char *way = arguments, *name = "libmpi.so.40";
    char path[PATH_MAX] = "";
    int flags = RTLD_NOW | RTLD_GLOBAL;
    if (!strcmp(way, "local")) flags = RTLD_NOW | RTLD_LOCAL;
    if (!strcmp(way, "deep")) flags = RTLD_LAZY | RTLD_DEEPBIND;
    if (!strcmp(way, "closed")) dlclose(dlopen(name, flags));
    int by_path = !strcmp(way, "path") || !strcmp(way, "only");
    if (by_path || !strcmp(way, "twice")) {
        CHECK(realpath(getenv("TRIAL_LIBMPI"), path) != NULL, "%s", strerror(errno));
        library = dlopen(path, flags);
    }
    if (!by_path) {
        void *by_name = dlopen(name, flags);
        CHECK(!library || library == by_name, "%s is another library by its path", name);
        library = by_name;
    }
    return NULL;
}

static void *symbol(const char *name) {
    void *found = dlsym(library, name);
    CHECK(found != NULL, "%s", dlerror());
    return found;
}

int main(int argc, char **argv) {
    char *way = argc > 1 ? argv[1] : "name";
    if (strcmp(way, "only")) CHECK(dlopen("libmpi.so.40", RTLD_NOW | RTLD_NOLOAD) == NULL, "%s", "MPI is loaded already");
    pthread_t thread;
    if (strcmp(way, "late"))
        load(way);
    else if (pthread_create(&thread, NULL, load, way) == 0)
        pthread_join(thread, NULL);
    CHECK(library != NULL, "%s", dlerror());
    if (!library) return 1;
    mpi.init = symbol("MPI_Init");
    mpi.rank = symbol("MPI_Comm_rank");
    mpi.size = symbol("PMPI_Comm_size");
    mpi.finalize = symbol("MPI_Finalize");
    mpi.allreduce = symbol("MPI_Allreduce");
    mpi.world = symbol("ompi_mpi_comm_world");
    MPI_Datatype type = symbol("ompi_mpi_int");
    MPI_Op sum = symbol("ompi_mpi_op_sum");
    trial_start(&argc, &argv);
    trial_hold();
    int one = trial_rank + 1, all = 0;
    MUST(mpi.allreduce(&one, &all, 1, type, sum, MPI_COMM_WORLD));
    CHECK(all == trial_size * (trial_size + 1) / 2, "sum %d", all);
    void *again = dlopen("libmpi.so.40", RTLD_NOW | RTLD_NOLOAD);
    CHECK(again == library, "%s", "MPI is no longer what it was");
    char *further = getenv("TRIAL_FURTHER");
    if (further) CHECK(dlopen(further, RTLD_NOW) == library, "%s: %s", further, dlerror());
    return trial_finish();
}
