/* The error handler of MPI_FILE_NULL is what files get that are opened later: those that are open keep theirs. A file that is deleted on close is gone when the close
 * returns, and one that is made after it stays.
 * trial: ranks=2 */
#include "../common.h"
#include <sys/stat.h>

enum { ROUNDS = 100 };

static MPI_File opened(const char *path, MPI_Comm comm) {
    MPI_File file;
    int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    MUST(MPI_File_open(comm, path, mode, MPI_INFO_NULL, &file));
    return file;
}

static void has(MPI_File file, MPI_Errhandler expected, const char *which) {
    MPI_Errhandler handler;
    MUST(MPI_File_get_errhandler(file, &handler));
    CHECK(handler == expected, "%s has another handler", which);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    char first[PATH_MAX], later[PATH_MAX], shared[PATH_MAX];
    trial_own_file(first, sizeof first, "first");
    trial_own_file(later, sizeof later, "later");
    const char *directory = getenv("TRIAL_DIR");
    snprintf(shared, sizeof shared, "%s/shared", directory ? directory : ".");
    MPI_File before = opened(first, MPI_COMM_SELF);
    MUST(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_ARE_FATAL));
    MPI_File after = opened(later, MPI_COMM_SELF);
    has(before, MPI_ERRORS_RETURN, "the file from before");
    has(after, MPI_ERRORS_ARE_FATAL, "the file from after");
    MUST(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
    has(after, MPI_ERRORS_ARE_FATAL, "the file from after");
    trial_hold();
    CHECK(MPI_File_seek(before, -5, MPI_SEEK_SET) != MPI_SUCCESS, "%s", "a place before the beginning");
    has(after, MPI_ERRORS_ARE_FATAL, "the file from after");
    MUST(MPI_File_close(&before));
    MUST(MPI_File_close(&after));
    CHECK(access(first, F_OK) != 0 && access(later, F_OK) != 0, "%s", "the files are there");
    int lost = 0;
    for (int round = 0; round < ROUNDS; round++) {
        MPI_File file = opened(shared, MPI_COMM_WORLD);
        MUST(MPI_File_close(&file));
        if (trial_rank == 0) close(open(shared, O_CREAT | O_WRONLY, 0600));
        MUST(MPI_Barrier(MPI_COMM_WORLD));
        if (trial_rank == 0) {
            lost += access(shared, F_OK) != 0;
            unlink(shared);
        }
        MUST(MPI_Barrier(MPI_COMM_WORLD));
    }
    CHECK(lost == 0, "%d of %d files that were made after the close are gone", lost, ROUNDS);
    return trial_finish();
}
