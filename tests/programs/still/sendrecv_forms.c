/* Sendrecv and Sendrecv_replace in a ring, one rank of which comes late, so that the others are blocked in them.
 * trial: ranks=2,4 */
#include "../common.h"

#define COUNT 100000

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int next = (trial_rank + 1) % trial_size, previous = (trial_rank + trial_size - 1) % trial_size;
    double *out = malloc(COUNT * sizeof *out), *in = malloc(COUNT * sizeof *in);
    MPI_Status status;
    for (int i = 0; i < COUNT; i++) out[i] = trial_rank + i * 0.5, in[i] = -1;
    trial_ready();
    if (trial_rank == 0) trial_wait();
    MUST(MPI_Sendrecv(out, COUNT, MPI_DOUBLE, next, 4, in, COUNT, MPI_DOUBLE, previous, MPI_ANY_TAG, MPI_COMM_WORLD,
                      &status));
    int wrong = 0;
    for (int i = 0; i < COUNT; i++) wrong += in[i] != previous + i * 0.5;
    CHECK(wrong == 0, "%d elements wrong", wrong);
    CHECK(status.MPI_SOURCE == previous && status.MPI_TAG == 4, "status %d %d", status.MPI_SOURCE, status.MPI_TAG);
    for (int step = 0; step < trial_size; step++)
        MUST(MPI_Sendrecv_replace(out, COUNT, MPI_DOUBLE, next, 5, previous, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    wrong = 0;
    for (int i = 0; i < COUNT; i++) wrong += out[i] != trial_rank + i * 0.5;
    CHECK(wrong == 0, "%d elements wrong after a whole round", wrong);
    /* To and from nobody. */
    in[0] = 3.25;
    MUST(MPI_Sendrecv(out, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, in, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status));
    CHECK(in[0] == 3.25 && status.MPI_SOURCE == MPI_PROC_NULL, "a message from nobody");
    in[1] = 4.5;
    MPI_Status statuses[2] = {{.MPI_SOURCE = 77}, {.MPI_SOURCE = 77}};
    MPI_Request requests[2];
    MUST(MPI_Irecv(in, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[0]));
    MUST(MPI_Recv_init(in + 1, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[1]));
    MUST(MPI_Start(&requests[1]));
    MUST(MPI_Waitall(2, requests, statuses));
    for (int i = 0; i < 2; i++) {
        int count = -1;
        MUST(MPI_Get_count(&statuses[i], MPI_DOUBLE, &count));
        CHECK(statuses[i].MPI_SOURCE == MPI_PROC_NULL && statuses[i].MPI_TAG == MPI_ANY_TAG && count == 0,
              "request %d: %d elements of %d with tag %d", i, count, statuses[i].MPI_SOURCE, statuses[i].MPI_TAG);
    }
    CHECK(in[0] == 3.25 && in[1] == 4.5 && requests[0] == MPI_REQUEST_NULL, "requests of nobody");
    MUST(MPI_Request_free(&requests[1]));
    return trial_finish();
}
