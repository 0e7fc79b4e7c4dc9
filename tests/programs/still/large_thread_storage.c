/* The program's own thread-local storage takes the place where the lower half's libraries would have theirs: every call then
 * switches the thread pointer, and neither the program's variables nor the real MPI's suffer.
 * trial: ranks=2 flags=-pthread */
#include "../common.h"
#include <pthread.h>

enum { BYTES = 65536, COUNT = 1000 };
static __thread unsigned char own[BYTES];

static void fill(uint64_t seed) {
    trial_fill(own, BYTES, seed);
}

static void check(uint64_t seed, const char *when) {
    CHECK(trial_differs(own, BYTES, seed) < 0, "the thread's variable has changed %s", when);
}

static void talk(int round) {
    int peer = trial_rank ^ 1, out[COUNT], in[COUNT], sum = 0;
    MPI_Request requests[2];
    for (int i = 0; i < COUNT; i++) out[i] = trial_rank * COUNT + i + round;
    MUST(MPI_Irecv(in, COUNT, MPI_INT, peer, round, MPI_COMM_WORLD, &requests[0]));
    MUST(MPI_Isend(out, COUNT, MPI_INT, peer, round, MPI_COMM_WORLD, &requests[1]));
    MUST(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < COUNT; i++)
        if (in[i] != peer * COUNT + i + round) {
            CHECK(0, "round %d: element %d is %d", round, i, in[i]);
            break;
        }
    MUST(MPI_Allreduce(&round, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == round * trial_size, "sum %d", sum);
}

static void *body(void *argument) {
    fill(7);
    talk(3);
    check(7, "in a thread");
    return argument;
}

int main(int argc, char **argv) {
    fill(5);
    trial_start_threads(&argc, &argv, MPI_THREAD_MULTIPLE);
    check(5, "when MPI started");
    for (int round = 0; round < 20; round++) talk(round);
    check(5, "in calls");
    trial_hold();
    check(5, "at the checkpoint");
    for (int round = 0; round < 20; round++) talk(round);
    pthread_t thread;
    pthread_create(&thread, NULL, body, NULL);
    pthread_join(thread, NULL);
    check(5, "in calls afterwards");
    return trial_finish();
}
