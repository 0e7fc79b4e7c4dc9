/* MPI files have shared pointers: in a file that was written in order, in one with a view, and in a sequential one.
 * trial: ranks=2,3 */
#include "../files.h"

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
    MUST(MPI_Barrier(MPI_COMM_WORLD));

    trial_hold();

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
    return trial_finish();
}
