/* A receive from ANY_SOURCE is blocked while its sender waits, blocked too, for somebody else.
 * trial: ranks=3,4 */
#include "../common.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int last = trial_size - 1, value = -1;
    MPI_Status status;
    if (trial_rank == last) {
        trial_hold();
        value = 100;
        MUST(MPI_Send(&value, 1, MPI_INT, last - 1, 5, MPI_COMM_WORLD));
    } else {
        /* Everybody waits for the next rank, from any source; the last one waits for `go`. */
        trial_ready();
        MUST(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
        CHECK(status.MPI_SOURCE == trial_rank + 1, "from rank %d", status.MPI_SOURCE);
        CHECK(status.MPI_TAG == 5 + (last - 1 - trial_rank), "with tag %d", status.MPI_TAG);
        CHECK(value == 100 + (last - 1 - trial_rank), "got %d", value);
        int count = 0;
        MUST(MPI_Get_count(&status, MPI_INT, &count));
        CHECK(count == 1, "%d elements", count);
        value++;
        if (trial_rank > 0) MUST(MPI_Send(&value, 1, MPI_INT, trial_rank - 1, status.MPI_TAG + 1, MPI_COMM_WORLD));
    }
    return trial_finish();
}
