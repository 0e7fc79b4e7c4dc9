/* A message in flight that is longer than the receive gives MPI_ERR_TRUNCATE, and one in the wrong place stays.
 * trial: ranks=2 */
#include "../common.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int values[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    MUST(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    if (trial_rank == 0) {
        MUST(MPI_Send(values, 10, MPI_INT, 1, 1, MPI_COMM_WORLD));
        MUST(MPI_Send(values, 10, MPI_INT, 1, 1, MPI_COMM_WORLD));
        trial_hold();
    } else {
        int got[10] = {0}, class = 0, count = 0;
        MPI_Status status;
        trial_hold();
        int error = MPI_Recv(got, 4, MPI_INT, 0, 1, MPI_COMM_WORLD, &status);
        CHECK(error != MPI_SUCCESS, "a message of 10 went into 4");
        MPI_Error_class(error, &class);
        CHECK(class == MPI_ERR_TRUNCATE, "error class %d", class);
        for (int i = 4; i < 10; i++) CHECK(got[i] == 0, "element %d was written", i);
        MUST(MPI_Recv(got, 10, MPI_INT, 0, 1, MPI_COMM_WORLD, &status));
        MUST(MPI_Get_count(&status, MPI_INT, &count));
        CHECK(count == 10 && got[9] == 10, "%d elements, last %d", count, got[9]);
    }
    return trial_finish();
}
