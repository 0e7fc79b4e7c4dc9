/* MPI files have shared pointers: in a file that was written in order, in one with a view, in sequential ones, in one that a single rank uses. A library may
 * keep them in files of its own, as ROMIO does: none of these is left.
 * trial: ranks=2,3 */
#include "../files.h"
#include <dirent.h>

/* Files of ROMIO's for shared pointers in the trial's directory. */
static int left(void) {
    const char *directory = getenv("TRIAL_DIR");
    DIR *all = opendir(directory ? directory : ".");
    int found = 0;
    CHECK(all, "the directory cannot be read");
    for (struct dirent *one; all && (one = readdir(all));) found += strstr(one->d_name, ".shfp.") != NULL;
    if (all) closedir(all);
    return found;
}

static long shared(MPI_File file) {
    MPI_Offset position = -1;
    MUST(MPI_File_get_position_shared(file, &position));
    return (long)position;
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int values[4], back[32];
    for (int i = 0; i < 4; i++) values[i] = 100 * trial_rank + i;
    MPI_Status status;
    MPI_File ordered = files_open(MPI_COMM_WORLD, "ordered", MPI_MODE_CREATE | MPI_MODE_RDWR);
    MUST(MPI_File_write_ordered(ordered, values, 2, MPI_INT, &status));
    MPI_File viewed = files_open(MPI_COMM_WORLD, "viewed", MPI_MODE_CREATE | MPI_MODE_RDWR);
    MUST(MPI_File_set_view(viewed, 12, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    MUST(MPI_File_write_shared(viewed, values, 4, MPI_INT, &status));
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(shared(viewed) == 4 * trial_size, "pointer %ld", shared(viewed));
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    MUST(MPI_File_seek_shared(viewed, 4, MPI_SEEK_SET));
    MPI_File sequential = files_open(MPI_COMM_WORLD, "sequential", MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL);
    MUST(MPI_File_write_ordered(sequential, values, 1, MPI_INT, &status));
    MPI_File late = files_open(MPI_COMM_WORLD, "late", MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL);
    MUST(MPI_File_write_ordered(late, values, 3, MPI_INT, &status));
    MPI_File single = files_open(MPI_COMM_WORLD, "single", MPI_MODE_CREATE | MPI_MODE_RDWR);
    if (trial_rank == trial_size - 1) MUST(MPI_File_write_shared(single, values, 3, MPI_INT, &status));
    MUST(MPI_Barrier(MPI_COMM_WORLD));

    trial_hold();

    int mode = 0;
    MUST(MPI_File_get_amode(late, &mode));
    CHECK(mode == (MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL), "mode %d", mode);
    CHECK(shared(single) == 12, "pointer %ld", shared(single));
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    if (trial_rank == 0) MUST(MPI_File_write_shared(single, values, 1, MPI_INT, &status));
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(shared(single) == 16, "pointer %ld", shared(single));
    CHECK(files_size(single) == 4 * sizeof(int), "size %ld", files_size(single));
    MUST(MPI_File_close(&single));
    /* What is written from here on stands behind what is there. */
    MUST(MPI_File_set_view(late, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    MUST(MPI_File_write_ordered(late, values + 3, 1, MPI_INT, &status));
    MPI_Offset from = -1;
    MPI_Datatype types[2];
    char name[MPI_MAX_DATAREP_STRING];
    MUST(MPI_File_get_view(late, &from, &types[0], &types[1], name));
    CHECK(from == (MPI_Offset)(3 * trial_size * sizeof(int)), "the view begins at %ld", (long)from);
    MUST(MPI_File_close(&late));
    late = files_open(MPI_COMM_WORLD, "late", MPI_MODE_RDONLY);
    MUST(MPI_File_read(late, back, 4 * trial_size, MPI_INT, &status));
    for (int i = 0; i < 4 * trial_size; i++) {
        int ahead = i < 3 * trial_size, rank = ahead ? i / 3 : i - 3 * trial_size;
        CHECK(back[i] == 100 * rank + (ahead ? i % 3 : 3), "element %d is %d", i, back[i]);
    }
    MUST(MPI_File_close(&late));

    long pointer = shared(ordered);
    CHECK(pointer == 8 * trial_size, "pointer %ld", pointer);
    CHECK(files_position(ordered) == 0, "position %ld", files_position(ordered));
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    MUST(MPI_File_write_ordered(ordered, values + 2, 2, MPI_INT, &status));
    MUST(MPI_File_sync(ordered));
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    MUST(MPI_File_read_at(ordered, 0, back, 4 * trial_size, MPI_INT, &status));
    for (int i = 0; i < 4 * trial_size; i++) {
        int half = i / (2 * trial_size), rank = i / 2 % trial_size;
        CHECK(back[i] == 100 * rank + 2 * half + i % 2, "element %d is %d", i, back[i]);
    }
    MUST(MPI_File_close(&ordered));

    pointer = shared(viewed);
    CHECK(pointer == 4, "pointer %ld", pointer);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    if (trial_rank > 0) {
        MUST(MPI_File_read_shared(viewed, back, 4, MPI_INT, &status));
        for (int i = 0; i < 4; i++) CHECK(back[i] % 100 == i, "element %d is %d", i, back[i]);
    }
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(shared(viewed) == 4 * trial_size, "pointer %ld", shared(viewed));
    MUST(MPI_File_close(&viewed));

    MUST(MPI_File_write_ordered(sequential, values + 1, 1, MPI_INT, &status));
    MUST(MPI_File_close(&sequential));
    MPI_File plain = files_open(MPI_COMM_WORLD, "sequential", MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE);
    MUST(MPI_File_read(plain, back, 2 * trial_size, MPI_INT, &status));
    for (int i = 0; i < 2 * trial_size; i++)
        CHECK(back[i] == 100 * (i % trial_size) + i / trial_size, "element %d is %d", i, back[i]);
    MUST(MPI_File_close(&plain));
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(left() == 0, "%d files for shared pointers are left", left());
    return trial_finish();
}
