/* A message has been sent that nobody receives yet, a put is under way, and the receiver waits in a barrier: the drain takes the message in, and completes the
 * put, on threads that wait in the real MPI, where nothing may be called that waits for another event.
 * trial: ranks=2 */
#include "../common.h"

int main(int argc, char **argv) {
    trial_start_threads(&argc, &argv, MPI_THREAD_MULTIPLE);
    int sent = 4711, got = 0, *memory;
    MPI_Status status;
    MPI_Win window;
    MUST(MPI_Win_allocate(sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window));
    *memory = 0;
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    MUST(MPI_Win_lock_all(0, window));
    if (trial_rank == 0) MUST(MPI_Send(&sent, 1, MPI_INT, 1, 5, MPI_COMM_WORLD));
    if (trial_rank == 1) MUST(MPI_Put(&sent, 1, MPI_INT, 0, 0, 1, MPI_INT, window));
    trial_ready();
    if (trial_rank == 0) trial_wait();
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    MUST(MPI_Win_unlock_all(window));
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    if (trial_rank == 0) CHECK(*memory == sent, "%d was put", *memory);
    if (trial_rank == 1) {
        MUST(MPI_Recv(&got, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, &status));
        CHECK(got == sent && status.MPI_SOURCE == 0 && status.MPI_TAG == 5, "%d from %d with %d", got, status.MPI_SOURCE, status.MPI_TAG);
    }
    MUST(MPI_Win_free(&window));
    return trial_finish();
}
