/* Threads set, ask for and free error handlers while others make errors: each error runs one of the handlers, and the communicator has the last one that
 * was set.
 * trial: ranks=2 flags=-pthread */
#include "../common.h"
#include <pthread.h>
#include <stdatomic.h>

enum { SETS = 3000 };

static MPI_Comm comm;
static atomic_int ends, called, errors;

static void handler(MPI_Comm *on, int *code, ...) {
    int class = 0;
    MPI_Error_class(*code, &class);
    CHECK(*on == comm && class == MPI_ERR_RANK, "class %d", class);
    atomic_fetch_add(&called, 1);
}

static void *set(void *argument) {
    for (int i = 0; i < SETS; i++) {
        MPI_Errhandler own;
        MUST(MPI_Comm_create_errhandler(handler, &own));
        MUST(MPI_Comm_set_errhandler(comm, own));
        MUST(MPI_Errhandler_free(&own));
    }
    return argument;
}

static void *ask(void *argument) {
    while (!atomic_load(&ends)) {
        MPI_Errhandler got;
        MUST(MPI_Comm_get_errhandler(comm, &got));
        CHECK(got != MPI_ERRORS_ARE_FATAL && got != MPI_ERRHANDLER_NULL, "%s", "not one that was set");
        MUST(MPI_Errhandler_free(&got));
    }
    return argument;
}

static void *fail(void *argument) {
    while (!atomic_load(&ends)) {
        int value = 0;
        CHECK(MPI_Send(&value, 1, MPI_INT, 1234, 0, comm) != MPI_SUCCESS, "%s", "a send to nobody succeeds");
        atomic_fetch_add(&errors, 1);
    }
    return argument;
}

static void at_once(void) {
    pthread_t threads[4];
    void *(*const does[4])(void *) = {set, set, ask, fail};
    ends = called = errors = 0;
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, does[i], NULL);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        if (i == 1) ends = 1;
    }
    CHECK(called == errors, "%d errors, a handler ran %d times", errors, called);
    int value = 0;
    MPI_Send(&value, 1, MPI_INT, 1234, 0, comm);
    CHECK(called == errors + 1, "%s", "no handler is left");
}

int main(int argc, char **argv) {
    trial_start_threads(&argc, &argv, MPI_THREAD_MULTIPLE);
    MPI_Errhandler first;
    MUST(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    MUST(MPI_Comm_create_errhandler(handler, &first));
    MUST(MPI_Comm_set_errhandler(comm, first));
    MUST(MPI_Errhandler_free(&first));
    at_once();
    trial_hold();
    at_once();
    MUST(MPI_Comm_free(&comm));
    return trial_finish();
}
