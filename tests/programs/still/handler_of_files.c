/* The error handler of MPI_FILE_NULL is what files get that are opened later: those that are open keep theirs.
 * trial: ranks=2 */
#include "../common.h"

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
    char first[PATH_MAX], later[PATH_MAX];
    trial_own_file(first, sizeof first, "first");
    trial_own_file(later, sizeof later, "later");
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
    return trial_finish();
}
