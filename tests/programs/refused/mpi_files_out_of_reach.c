/* MPI files are open that a restart would not find: one has no name any more, another file has the name of another, and one is a
 * device. The checkpoint refuses by name, and the files are written to the end.
 * trial: ranks=2 refuses=lost-mpi-file */
#include "../files.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int value = 7 + trial_rank, back = 0;
    char other[PATH_MAX];
    MPI_Status status;
    MPI_File unlinked = files_open(MPI_COMM_WORLD, "unlinked", MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_File renamed = files_open(MPI_COMM_WORLD, "renamed", MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_File device;
    MUST(MPI_File_open(MPI_COMM_SELF, "/dev/null", MPI_MODE_WRONLY, MPI_INFO_NULL, &device));
    if (trial_rank == 0) {
        CHECK(unlink(files_path("unlinked")) == 0, "unlink: %s", strerror(errno));
        snprintf(other, sizeof other, "%s", files_path("away"));
        CHECK(rename(files_path("renamed"), other) == 0, "rename: %s", strerror(errno));
        int number = open(files_path("renamed"), O_CREAT | O_WRONLY, 0600);
        CHECK(number >= 0 && close(number) == 0, "open: %s", strerror(errno));
    }
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    trial_hold();
    MPI_File both[] = {unlinked, renamed};
    for (int i = 0; i < 2; i++) {
        MUST(MPI_File_write_at_all(both[i], 4 * trial_rank, &value, 1, MPI_INT, &status));
        MUST(MPI_File_sync(both[i]));
        MUST(MPI_Barrier(MPI_COMM_WORLD));
        MUST(MPI_File_read_at(both[i], 4 * (1 - trial_rank), &back, 1, MPI_INT, &status));
        CHECK(back == 8 - trial_rank, "read %d", back);
        MUST(MPI_File_close(&both[i]));
    }
    MUST(MPI_File_write(device, &value, 1, MPI_INT, &status));
    MUST(MPI_File_close(&device));
    return trial_finish();
}
