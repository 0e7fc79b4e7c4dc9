/* MPI files have views of derived datatypes, which the application has freed: strided, a part of a matrix, structures; two views one
 * after the other; positions lie in the middle.
 * trial: ranks=2,3 */
#include "../files.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int values[12], back[12];
    for (int i = 0; i < 12; i++) values[i] = 100 * trial_rank + i, back[i] = -1;
    MPI_Status status;
    MPI_Offset offset = -1, displacement = -1;
    MPI_Datatype strided, part, pair, element, filetype;
    char representation[MPI_MAX_DATAREP_STRING] = "";

    /* Two integers of every rank in turn. */
    MPI_File all = files_open(MPI_COMM_WORLD, "strided", MPI_MODE_CREATE | MPI_MODE_RDWR);
    MUST(MPI_File_set_view(all, 4, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    MUST(MPI_Type_contiguous(2, MPI_INT, &pair));
    MUST(MPI_Type_create_resized(pair, 0, 8 * trial_size, &strided));
    MUST(MPI_Type_commit(&strided));
    MUST(MPI_Type_free(&pair));
    MUST(MPI_File_set_view(all, 16 + 8 * trial_rank, MPI_INT, strided, "native", MPI_INFO_NULL));
    MUST(MPI_Type_free(&strided));
    MUST(MPI_File_write(all, values, 5, MPI_INT, &status));

    /* Columns of a matrix, of structures. */
    int sizes[] = {4, 3 * trial_size}, sub[] = {4, 3}, starts[] = {0, 3 * trial_rank}, blocks[] = {1, 1};
    MPI_Aint places[] = {0, 8};
    MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE};
    struct { int number; double value; } columns[12], read[12];
    memset(columns, 0, sizeof columns);
    memset(read, 0, sizeof read);
    for (int i = 0; i < 12; i++) columns[i].number = values[i], columns[i].value = 0.5 * values[i];
    MUST(MPI_Type_create_struct(2, blocks, places, types, &element));
    MUST(MPI_Type_commit(&element));
    MUST(MPI_Type_create_subarray(2, sizes, sub, starts, MPI_ORDER_C, element, &part));
    MUST(MPI_Type_commit(&part));
    MPI_File matrix = files_open(MPI_COMM_WORLD, "matrix", MPI_MODE_CREATE | MPI_MODE_RDWR);
    MUST(MPI_File_set_view(matrix, 64, element, part, "native", MPI_INFO_NULL));
    MUST(MPI_Type_free(&part));
    MUST(MPI_File_write_all(matrix, columns, 6, element, &status));

    trial_hold();

    MUST(MPI_File_get_view(all, &displacement, &element, &filetype, representation));
    CHECK(displacement == 16 + 8 * trial_rank, "displacement %ld", (long)displacement);
    CHECK(element == MPI_INT && strcmp(representation, "native") == 0, "representation %s", representation);
    CHECK(files_position(all) == 5, "position %ld", files_position(all));
    MUST(MPI_File_get_byte_offset(all, 5, &offset));
    CHECK(offset == 16 + 8 * trial_rank + 2 * 8 * trial_size + 4, "byte %ld", (long)offset);
    MUST(MPI_File_write(all, values + 5, 7, MPI_INT, &status));
    CHECK(files_count(&status, MPI_INT) == 7, "%d elements", files_count(&status, MPI_INT));
    MUST(MPI_File_seek(all, 0, MPI_SEEK_SET));
    MUST(MPI_File_read_all(all, back, 12, MPI_INT, &status));
    for (int i = 0; i < 12; i++) CHECK(back[i] == values[i], "element %d is %d", i, back[i]);
    MUST(MPI_File_close(&all));

    CHECK(files_position(matrix) == 6, "position %ld", files_position(matrix));
    MUST(MPI_File_get_view(matrix, &displacement, &element, &filetype, representation));
    MUST(MPI_File_write_all(matrix, columns + 6, 6, element, &status));
    files_written(matrix, MPI_COMM_WORLD);
    MUST(MPI_File_seek(matrix, 0, MPI_SEEK_SET));
    MUST(MPI_File_read_all(matrix, read, 12, element, &status));
    for (int i = 0; i < 12; i++)
        CHECK(read[i].number == values[i] && read[i].value == 0.5 * values[i], "element %d is %d", i, read[i].number);
    MUST(MPI_Type_free(&element));
    MUST(MPI_Type_free(&filetype));
    MUST(MPI_File_close(&matrix));

    /* As bytes: nobody has written where others do. */
    int bytes[4 + 2 * 6 * 4];
    MPI_File plain = files_open(MPI_COMM_SELF, "strided", MPI_MODE_RDONLY);
    MUST(MPI_File_read_at(plain, 16, bytes, 12 * trial_size, MPI_INT, &status));
    for (int i = 0; i < 12 * trial_size; i++) {
        int expected = 100 * (i / 2 % trial_size) + 2 * (i / (2 * trial_size)) + i % 2;
        if (i / 2 % trial_size == trial_rank) CHECK(bytes[i] == expected, "element %d is %d, not %d", i, bytes[i], expected);
    }
    MUST(MPI_File_close(&plain));
    return trial_finish();
}
