/* A file that is deleted on close is gone when the close returns, and one that is made after it stays. (Open MPI 4.1 itself deletes some of these.)
 * trial: ranks=2 */
#include "../common.h"

enum { ROUNDS = 200 };

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    char path[PATH_MAX];
    int lost = 0, mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    const char *directory = getenv("TRIAL_DIR");
    snprintf(path, sizeof path, "%s/shared", directory ? directory : ".");
    for (int round = 0; round < ROUNDS; round++) {
        MPI_File file;
        MUST(MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &file));
        MUST(MPI_File_close(&file));
        if (trial_rank == 0) {
            CHECK(access(path, F_OK) != 0, "%s", "the file is there after its close");
            close(open(path, O_CREAT | O_WRONLY, 0600));
        }
        MUST(MPI_Barrier(MPI_COMM_WORLD));
        if (trial_rank == 0) {
            lost += access(path, F_OK) != 0;
            unlink(path);
        }
        MUST(MPI_Barrier(MPI_COMM_WORLD));
    }
    CHECK(lost == 0, "%d of %d files that were made after the close are gone", lost, ROUNDS);
    trial_hold();
    return trial_finish();
}
