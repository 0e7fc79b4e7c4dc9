/* An Ibarrier that one rank has not begun yet is pending; another one is complete but not waited for.
 * trial: ranks=2,4 */
#include "../common.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    MPI_Request complete, pending = MPI_REQUEST_NULL;
    int flag = 0;
    MUST(MPI_Ibarrier(MPI_COMM_WORLD, &complete));
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    if (trial_rank != 0) {
        MUST(MPI_Ibarrier(MPI_COMM_WORLD, &pending));
        MUST(MPI_Test(&pending, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag, "nobody else has come");
    }
    trial_hold();
    if (trial_rank != 0) {
        /* Rank 0 begins its part only after having heard from here. */
        MUST(MPI_Test(&pending, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag, "complete before rank 0 has come");
        MUST(MPI_Send(NULL, 0, MPI_INT, 0, 1, MPI_COMM_WORLD));
    } else {
        for (int i = 1; i < trial_size; i++) MUST(MPI_Recv(NULL, 0, MPI_INT, i, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        MUST(MPI_Ibarrier(MPI_COMM_WORLD, &pending));
    }
    MUST(MPI_Wait(&pending, MPI_STATUS_IGNORE));
    MUST(MPI_Wait(&complete, MPI_STATUS_IGNORE));
    CHECK(complete == MPI_REQUEST_NULL && pending == MPI_REQUEST_NULL, "not null");
    return trial_finish();
}
