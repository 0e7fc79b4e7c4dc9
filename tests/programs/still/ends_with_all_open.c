/* A program that may call MPI from every thread, and has a file and a window open, waits inside a collective operation: a suspend ends it
 * as it ends others, at once and with their status.
 * trial: ranks=2 */
#include "../common.h"

int main(int argc, char **argv) {
    trial_start_threads(&argc, &argv, MPI_THREAD_MULTIPLE);
    MPI_File file;
    MPI_Win window;
    int *memory, got = -1;
    char path[PATH_MAX];
    trial_path(path, sizeof path, "shared");
    if (!getenv("TRIAL_DIR")) snprintf(path, sizeof path, "shared.tmp");
    MUST(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    MUST(MPI_Win_allocate(sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window));
    *memory = 10 + trial_rank;
    trial_ready();
    /* Rank 0 is inside while rank 1 waits for word. */
    if (trial_rank == 1) trial_wait();
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    MUST(MPI_File_write_at(file, trial_rank * sizeof *memory, memory, 1, MPI_INT, MPI_STATUS_IGNORE));
    MUST(MPI_Win_fence(0, window));
    MUST(MPI_Get(&got, 1, MPI_INT, 1 - trial_rank, 0, 1, MPI_INT, window));
    MUST(MPI_Win_fence(0, window));
    CHECK(got == 11 - trial_rank, "the other's window has %d", got);
    MUST(MPI_File_read_at_all(file, (1 - trial_rank) * sizeof *memory, &got, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(got == 11 - trial_rank, "the file has %d", got);
    MUST(MPI_File_close(&file));
    MUST(MPI_Win_free(&window));
    return trial_finish();
}
