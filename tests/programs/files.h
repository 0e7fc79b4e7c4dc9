/* What the programs with open MPI files share. */
#ifndef TRIAL_FILES_H
#define TRIAL_FILES_H

#include "common.h"

/* A file of all ranks, in the trial's directory (the working directory where there is none). */
static inline const char *files_path(const char *name) {
    static char path[PATH_MAX];
    const char *directory = getenv("TRIAL_DIR");
    snprintf(path, sizeof path, "%s/%s", directory ? directory : ".", name);
    return path;
}

static inline MPI_File files_open(MPI_Comm on, const char *name, int mode) {
    MPI_File file = MPI_FILE_NULL;
    MUST(MPI_File_open(on, files_path(name), mode, MPI_INFO_NULL, &file));
    return file;
}

/* What all ranks of the file have written so far is there for all of them from here on (MPI 4.0, 14.6.1). A collective write does not give
 * that, not even for what is a rank's own: another rank may write it, and still be at it. */
static inline void files_written(MPI_File file, MPI_Comm on) {
    MUST(MPI_File_sync(file));
    MUST(MPI_Barrier(on));
    MUST(MPI_File_sync(file));
}

static inline long files_position(MPI_File file) {
    MPI_Offset position = -1;
    MUST(MPI_File_get_position(file, &position));
    return (long)position;
}

static inline long files_size(MPI_File file) {
    MPI_Offset size = -1;
    MUST(MPI_File_get_size(file, &size));
    return (long)size;
}

static inline int files_count(MPI_Status *status, MPI_Datatype type) {
    int count = -1;
    MUST(MPI_Get_count(status, type, &count));
    return count;
}

#endif
