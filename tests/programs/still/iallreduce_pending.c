/* Iallreduces, short and long, that some ranks have begun and others not; and one in place, which MPI cannot begin
 * again with the same input and which therefore all have begun.
 * trial: ranks=2,3,4 */
#include "../common.h"

#define LONG 300000

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    double *out = malloc(LONG * sizeof *out), *in = malloc(LONG * sizeof *in), one = trial_rank + 1.0, sum = 0.0;
    int place[3] = {trial_rank, -trial_rank, 5}, late = trial_rank == trial_size - 1;
    MPI_Request requests[3];
    for (int i = 0; i < LONG; i++) out[i] = i + trial_rank, in[i] = -1;
    MUST(MPI_Iallreduce(MPI_IN_PLACE, place, 3, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &requests[2]));
    for (int stage = 0; stage < 2; stage++) {
        if (stage == late) {
            MUST(MPI_Iallreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &requests[0]));
            MUST(MPI_Iallreduce(out, in, LONG, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &requests[1]));
        }
        if (stage == 0) trial_hold();
    }
    MUST(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
    int n = trial_size, wrong = 0;
    CHECK(sum == n * (n + 1) / 2.0, "sum %g", sum);
    for (int i = 0; i < LONG; i++) wrong += in[i] != (double)n * i + n * (n - 1) / 2.0;
    CHECK(wrong == 0, "%d elements wrong", wrong);
    CHECK(place[0] == n - 1 && place[1] == 0 && place[2] == 5, "in place: %d %d %d", place[0], place[1], place[2]);
    return trial_finish();
}
