/* Reductions with the program's operator go on while the program is outside of MPI: a library may have threads of its own for that.
 * trial: ranks=3 */
#include "../common.h"

static void sum(void *in, void *inout, int *count, MPI_Datatype *type) {
    long *a = in, *b = inout;
    (void)type;
    for (int i = 0; i < *count; i++) b[i] += a[i];
}

int main(int argc, char **argv) {
    trial_start_threads(&argc, &argv, MPI_THREAD_MULTIPLE);
    MPI_Op own;
    MUST(MPI_Op_create(sum, 1, &own));
    trial_ready();
    for (long all = 0, rounds = 0; all < trial_size || rounds < 10; rounds++) {
        long mine[2] = {trial_go(), trial_rank}, got[2] = {-1, -1};
        MPI_Request reduction;
        MUST(MPI_Iallreduce(mine, got, 2, MPI_LONG, own, MPI_COMM_WORLD, &reduction));
        usleep(10000);
        MUST(MPI_Wait(&reduction, MPI_STATUS_IGNORE));
        CHECK(got[1] == trial_size * (trial_size - 1) / 2, "round %ld: %ld", rounds, got[1]);
        all = got[0];
    }
    MUST(MPI_Op_free(&own));
    return trial_finish();
}
