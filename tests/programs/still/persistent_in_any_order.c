/* Persistent collectives that ranks start in different orders, at the checkpoint: active on all, started by some only, over on some
 * (whose others start them late), freed by some; one is made between the starts of others.
 * trial: ranks=2,3 */
#include "../collectives.h"

enum { EACH = 5 };
static const enum kind kinds[EACH] = {BCAST, BARRIER, ALLREDUCE, ALLGATHER, BCAST};

static struct collective *make(enum kind kind, MPI_Comm comm) {
    struct collective *c = collective_make(kind, comm, 20, 0);
    collective_fill(c, 0);
    collective_call(c, PERSISTENT);
    return c;
}

static void start(struct collective *c, int seed) {
    collective_fill(c, seed);
    MUST(MPI_Start(&c->request));
}

static void finish(struct collective *c) {
    MUST(MPI_Wait(&c->request, MPI_STATUS_IGNORE));
    collective_check(c);
}

/* Which one this rank starts as its i-th: odd ranks begin with the last. */
static int turn(int i) { return trial_rank % 2 ? EACH - 1 - i : i; }

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    struct collective *pending[EACH], *told[EACH], *freed[2], *some, *first, *between;
    MPI_Comm comms[2];
    for (int i = 0; i < 2; i++) MUST(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
    for (int i = 0; i < EACH; i++) {
        pending[i] = make(kinds[i], MPI_COMM_WORLD);
        told[i] = make(kinds[i], comms[0]);
    }
    some = make(ALLREDUCE, comms[1]);
    for (int i = 0; i < 2; i++) freed[i] = make(BCAST, comms[1]);
    first = make(ALLGATHER, comms[1]);
    /* Made before a start on odd ranks, after it on the others. */
    if (trial_rank % 2 == 0) start(first, 9);
    between = make(ALLREDUCE, comms[1]);
    if (trial_rank % 2) start(first, 9);
    start(between, 8);

    for (int i = 0; i < EACH; i++) start(pending[turn(i)], turn(i));
    if (trial_rank == 0) start(some, 7);
    /* The root needs nobody else to end a broadcast: it is told, frees one, and has begun what others begin in another order. */
    if (trial_rank == 0) {
        start(told[0], 1), start(told[1], 2);
        finish(told[0]);
        start(freed[0], 3), start(freed[1], 4);
        finish(freed[0]), finish(freed[1]);
        MUST(MPI_Request_free(&freed[0]->request));
        trial_ready();
    } else {
        trial_ready_late(1);
        start(told[1], 2), start(told[0], 1);
        start(freed[1], 4), start(freed[0], 3);
    }
    trial_wait();
    if (trial_rank) {
        start(some, 7);
        finish(told[0]);
        finish(freed[0]), finish(freed[1]);
        MUST(MPI_Request_free(&freed[0]->request));
    }
    finish(some), finish(told[1]), finish(between), finish(first);
    for (int i = 0; i < EACH; i++) finish(pending[EACH - 1 - turn(i)]);
    for (int round = 1; round < 4; round++) {
        for (int i = 0; i < EACH; i++) start(pending[turn(i)], 10 * round + turn(i)), start(told[turn(i)], 20 * round + turn(i));
        start(freed[1], round), start(some, round);
        finish(some), finish(freed[1]);
        for (int i = 0; i < EACH; i++) finish(told[i]), finish(pending[i]);
    }
    /* More of them than are kept in mind when all have freed them. */
    for (int i = 0; i < 1100; i++) {
        struct collective *c = make(BCAST, comms[0]);
        if (i % 100 == 0) start(c, i), finish(c);
        MUST(MPI_Request_free(&c->request));
        collective_delete(c);
    }
    MUST(MPI_Request_free(&freed[1]->request));
    struct collective *rest[] = {some, first, between};
    for (int i = 0; i < 3; i++) {
        MUST(MPI_Request_free(&rest[i]->request));
        collective_delete(rest[i]);
    }
    for (int i = 0; i < 2; i++) collective_delete(freed[i]);
    for (int i = 0; i < EACH; i++) {
        MUST(MPI_Request_free(&pending[i]->request));
        MUST(MPI_Request_free(&told[i]->request));
        collective_delete(pending[i]), collective_delete(told[i]);
    }
    for (int i = 0; i < 2; i++) MUST(MPI_Comm_free(&comms[i]));
    return trial_finish();
}
