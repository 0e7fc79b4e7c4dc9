/* An MPI file is open: the checkpoint refuses by name, and the file is written to the end.
 * trial: ranks=2 refuses=file */
#include "../common.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    char path[PATH_MAX];
    trial_path(path, sizeof path, "shared");
    if (!getenv("TRIAL_DIR")) snprintf(path, sizeof path, "./shared");
    MPI_File file;
    MPI_Status status;
    int values[10], back[10], peer = 1 - trial_rank, count = 0;
    for (int i = 0; i < 10; i++) values[i] = 100 * trial_rank + i;
    MUST(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    MUST(MPI_File_write_at(file, trial_rank * 40, values, 5, MPI_INT, &status));
    trial_hold();
    MUST(MPI_File_write_at_all(file, trial_rank * 40 + 20, values + 5, 5, MPI_INT, &status));
    MUST(MPI_Get_count(&status, MPI_INT, &count));
    CHECK(count == 5, "%d elements written", count);
    MUST(MPI_File_sync(file));
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    MUST(MPI_File_read_at(file, peer * 40, back, 10, MPI_INT, &status));
    for (int i = 0; i < 10; i++) CHECK(back[i] == 100 * peer + i, "element %d is %d", i, back[i]);
    MUST(MPI_File_close(&file));
    return trial_finish();
}
