/* Nonblocking and split collective operations on MPI files are under way; some are of derived datatypes that the application has freed.
 * trial: ranks=2,3 */
#include "../files.h"

enum { MANY = 1 << 18 };

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int bytes = MANY * (int)sizeof(int), flag = 0;
    int *out = malloc(bytes), *in = malloc(bytes), *in_all = malloc(bytes), *split = malloc(bytes), *back = malloc(bytes);
    MPI_Request write, read, read_all, more;
    MPI_Status status;
    MPI_Datatype strided;
    trial_fill(out, bytes, 7 * trial_rank + 1);
    memset(in, 0, bytes), memset(in_all, 0, bytes), memset(split, 0, bytes), memset(back, 0, bytes);

    MPI_File file = files_open(MPI_COMM_WORLD, "data", MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_File written = files_open(MPI_COMM_WORLD, "written", MPI_MODE_CREATE | MPI_MODE_RDWR);
    MUST(MPI_File_write_at_all(file, (MPI_Offset)trial_rank * bytes, out, MANY, MPI_INT, &status));
    files_written(file, MPI_COMM_WORLD);
    MUST(MPI_File_seek(file, (MPI_Offset)trial_rank * bytes, MPI_SEEK_SET));
    MUST(MPI_Type_vector(MANY / 2, 1, 2, MPI_INT, &strided));
    MUST(MPI_Type_commit(&strided));

    MUST(MPI_File_iread(file, in, 1, strided, &read));
    MUST(MPI_Type_free(&strided));
    MUST(MPI_File_iwrite_at(written, (MPI_Offset)trial_rank * bytes, out, MANY, MPI_INT, &write));
    MUST(MPI_File_iread_at_all(file, (MPI_Offset)trial_rank * bytes, in_all, MANY, MPI_INT, &read_all));
    MUST(MPI_File_iwrite_at(written, (MPI_Offset)(trial_size + trial_rank) * bytes, out, MANY, MPI_INT, &more));
    MUST(MPI_File_read_at_all_begin(file, (MPI_Offset)trial_rank * bytes, split, MANY, MPI_INT));

    trial_hold();

    MUST(MPI_File_read_at_all_end(file, split, &status));
    CHECK(files_count(&status, MPI_INT) == MANY, "%d elements", files_count(&status, MPI_INT));
    CHECK(trial_differs(split, bytes, 7 * trial_rank + 1) < 0, "%s", "another collective read");
    MUST(MPI_Wait(&read, &status));
    CHECK(files_count(&status, MPI_INT) == MANY / 2, "%d elements", files_count(&status, MPI_INT));
    CHECK(files_position(file) == (long)trial_rank * bytes + bytes / 2, "position %ld", files_position(file));
    for (int i = 0; i < MANY; i++)
        if (in[i] != (i % 2 ? 0 : out[i / 2])) {
            CHECK(0, "element %d is %d", i, in[i]);
            break;
        }
    MUST(MPI_Test(&write, &flag, &status));
    if (!flag) MUST(MPI_Wait(&write, &status));
    CHECK(files_count(&status, MPI_INT) == MANY, "%d elements", files_count(&status, MPI_INT));
    MUST(MPI_Wait(&more, MPI_STATUS_IGNORE));
    MUST(MPI_Wait(&read_all, &status));
    CHECK(files_count(&status, MPI_INT) == MANY, "%d elements", files_count(&status, MPI_INT));
    CHECK(trial_differs(in_all, bytes, 7 * trial_rank + 1) < 0, "%s", "another read");
    CHECK(read == MPI_REQUEST_NULL && write == MPI_REQUEST_NULL, "%s", "a request is there");

    MUST(MPI_File_write_all_begin(file, out, 1, MPI_INT));
    MUST(MPI_File_write_all_end(file, out, &status));
    MUST(MPI_File_sync(written));
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    for (int half = 0; half < 2; half++) {
        int peer = (trial_rank + 1) % trial_size;
        MUST(MPI_File_read_at(written, (MPI_Offset)(half * trial_size + peer) * bytes, back, MANY, MPI_INT, &status));
        CHECK(trial_differs(back, bytes, 7 * peer + 1) < 0, "half %d is not written from byte %ld on", half, trial_differs(back, bytes, 7 * peer + 1));
    }
    MUST(MPI_File_close(&written));
    MUST(MPI_File_close(&file));
    return trial_finish();
}
