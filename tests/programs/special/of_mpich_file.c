/* A file whose name says which driver MPICH is to take, deleted on close: the driver is no part of the path, which is the restart's too.
 * trial: ranks=2 */
#include "../common.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    char path[PATH_MAX], name[PATH_MAX + 4];
    int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, value = 7, got = 0;
    MPI_File file;
    trial_own_file(path, sizeof path, "named");
    snprintf(name, sizeof name, "ufs:%s", path);
    MUST(MPI_File_open(MPI_COMM_SELF, name, mode, MPI_INFO_NULL, &file));
    MUST(MPI_File_write(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(access(path, F_OK) == 0, "%s", "the file has another name");
    trial_hold();
    MUST(MPI_File_read_at(file, 0, &got, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(got == 7, "read %d", got);
    MUST(MPI_File_close(&file));
    CHECK(access(path, F_OK) != 0, "%s", "the file is there after its close");
    return trial_finish();
}
