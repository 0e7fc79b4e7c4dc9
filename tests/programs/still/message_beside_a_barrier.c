/* A message has been sent that nobody receives yet, and its receiver waits in a barrier: the drain takes the message in on a thread that waits in the real MPI,
 * where it may call nothing that waits.
 * trial: ranks=2 */
#include "../common.h"

int main(int argc, char **argv) {
    trial_start_threads(&argc, &argv, MPI_THREAD_MULTIPLE);
    int sent = 4711, got = 0;
    MPI_Status status;
    if (trial_rank == 0) MUST(MPI_Send(&sent, 1, MPI_INT, 1, 5, MPI_COMM_WORLD));
    trial_ready();
    if (trial_rank == 0) trial_wait();
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    if (trial_rank == 1) {
        MUST(MPI_Recv(&got, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, &status));
        CHECK(got == sent && status.MPI_SOURCE == 0 && status.MPI_TAG == 5, "%d from %d with %d", got, status.MPI_SOURCE, status.MPI_TAG);
    }
    return trial_finish();
}
