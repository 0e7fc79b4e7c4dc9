/* An Ineighbor_alltoall on a Cartesian grid is pending because one of the neighbours has not come.
 * trial: ranks=3,4 */
#include "../common.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int dims[1] = {trial_size}, periods[1] = {1}, in[8], out[8], coordinate = -1;
    MPI_Comm ring;
    MPI_Request requests[2];
    MUST(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &ring));
    MUST(MPI_Cart_coords(ring, trial_rank, 1, &coordinate));
    for (int i = 0; i < 8; i++) out[i] = 100 * trial_rank + i, in[i] = -1;
    int late = trial_rank == 1;
    for (int stage = 0; stage < 2; stage++) {
        if (stage == late) {
            MUST(MPI_Ineighbor_alltoall(out, 2, MPI_INT, in, 2, MPI_INT, ring, &requests[0]));
            MUST(MPI_Ineighbor_alltoall(out + 4, 2, MPI_INT, in + 4, 2, MPI_INT, ring, &requests[1]));
        }
        if (stage == 0) trial_hold();
    }
    MUST(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    int previous = -1, next = -1;
    MUST(MPI_Cart_shift(ring, 0, 1, &previous, &next));
    CHECK(previous == (trial_rank + trial_size - 1) % trial_size && next == (trial_rank + 1) % trial_size, "shift");
    /* The one before has sent us its second block, the one behind its first. */
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 2; i++) {
            int left = in[4 * round + i], right = in[4 * round + 2 + i];
            CHECK(left == 100 * previous + 4 * round + 2 + i, "round %d: from rank %d: %d", round, previous, left);
            CHECK(right == 100 * next + 4 * round + i, "round %d: from rank %d: %d", round, next, right);
        }
    MUST(MPI_Comm_free(&ring));
    return trial_finish();
}
