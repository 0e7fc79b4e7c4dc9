/* Two ranks have one file that no name leads to: a restart would make two of it. The checkpoint refuses, and both see what the other writes.
 * trial: ranks=2 refuses=nameless-file */
#include "../common.h"
#include <sys/mman.h>

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int file = -1, where[2] = {getpid(), -1};
    if (trial_rank == 0) where[1] = file = memfd_create("shared", MFD_CLOEXEC);
    MUST(MPI_Bcast(where, 2, MPI_INT, 0, MPI_COMM_WORLD));
    if (trial_rank == 1) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/fd/%d", where[0], where[1]);
        file = open(path, O_RDWR | O_CLOEXEC);
        CHECK(file >= 0, "%s: %s", path, strerror(errno));
    }
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    trial_hold();
    char word[2] = {0};
    if (trial_rank == 0) CHECK(pwrite(file, "a", 1, 0) == 1, "pwrite: %s", strerror(errno));
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(pread(file, word, 1, 0) == 1 && word[0] == 'a', "it has '%s'", word);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
