/* A reduction's operator runs, for longer than a call takes, where the program asks after a receive that has not come: a thread is not stopped in it, since the real MPI is beneath.
 * trial: ranks=2,3 */
#include "../common.h"

static int polling;
static long composed;

static void slowly(void *in, void *inout, int *count, MPI_Datatype *type) {
    long *a = in, *b = inout;
    (void)type;
    composed += polling;
    trial_compute(0.003);
    for (int i = 0; i < *count; i++) b[i] += a[i];
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int next = (trial_rank + 1) % trial_size, before = (trial_rank + trial_size - 1) % trial_size, come = 0, rounds = 0;
    long token = -1, sent = 7 * trial_rank;
    MPI_Op sum;
    MPI_Request receive, reduction;
    MPI_Status status;
    MUST(MPI_Op_create(slowly, 1, &sum));
    MUST(MPI_Irecv(&token, 1, MPI_LONG, before, 5, MPI_COMM_WORLD, &receive));
    trial_ready();
    for (long all = 0; all < trial_size || rounds < 10; rounds++) {
        long mine[2] = {trial_go(), trial_rank}, got[2] = {-1, -1};
        int over = 0;
        MUST(MPI_Iallreduce(mine, got, 2, MPI_LONG, sum, MPI_COMM_WORLD, &reduction));
        while (!over) {
            polling = 1;
            for (int i = 0; i < 200 && !come; i++) MUST(MPI_Test(&receive, &come, &status));
            polling = 0;
            MUST(MPI_Test(&reduction, &over, MPI_STATUS_IGNORE));
        }
        CHECK(!come && got[1] == trial_size * (trial_size - 1) / 2, "round %d: %ld, a receive %d", rounds, got[1], come);
        all = got[0];
    }
    /* Nobody asks any more. */
    MUST(MPI_Allreduce(MPI_IN_PLACE, &composed, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
    CHECK(composed > 0, "in %d rounds the operator ran elsewhere", rounds);
    MUST(MPI_Send(&sent, 1, MPI_LONG, next, 5, MPI_COMM_WORLD));
    MUST(MPI_Wait(&receive, &status));
    CHECK(token == 7 * before && status.MPI_SOURCE == before, "%ld of %d", token, status.MPI_SOURCE);
    MUST(MPI_Op_free(&sum));
    return trial_finish();
}
