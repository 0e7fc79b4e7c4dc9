/* Two ranks are in a collective operation that takes a while, though both have come to it. Rank 0 comes to another one, with
 * rank 1, if it is let run when it sees the file `come`; rank 1 comes to it when it may go on.
 * trial: ranks=4 */
#include "../common.h"

static int there(const char *name) {
    char path[PATH_MAX];
    trial_path(path, sizeof path, name);
    return access(path, F_OK) == 0;
}

/* An operator that takes its time. */
static void add_at_last(void *in, void *inout, int *count, MPI_Datatype *type) {
    (void)type;
    while (!there("end") && !trial_go()) usleep(1000);
    for (int i = 0; i < *count; i++) ((long *)inout)[i] += ((long *)in)[i];
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int long_one = trial_rank >= 2;
    MPI_Comm pair;
    MPI_Op operator;
    MUST(MPI_Comm_split(MPI_COMM_WORLD, long_one, trial_rank, &pair));
    MUST(MPI_Op_create(add_at_last, 1, &operator));
    trial_ready();
    if (trial_rank == 0)
        while (!there("come") && !trial_go()) usleep(500);
    if (trial_rank == 1) trial_wait();
    long in = 10 + trial_rank, sum = 0, expected = long_one ? 25 : 21;
    MUST(MPI_Allreduce(&in, &sum, 1, MPI_LONG, long_one ? operator : MPI_SUM, pair));
    CHECK(sum == expected, "%ld, not %ld", sum, expected);
    MUST(MPI_Op_free(&operator));
    MUST(MPI_Comm_free(&pair));
    return trial_finish();
}
