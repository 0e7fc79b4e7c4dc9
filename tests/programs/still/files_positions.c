/* MPI files are open on MPI_COMM_WORLD, on MPI_COMM_SELF, and on a communicator that was freed: positions, mode, error handler,
 * hints and atomicity stay, one is open for reading, one to be appended to, and one is deleted when it is closed.
 * trial: ranks=2,4 */
#include "../files.h"

static int errors = 0;

static void on_error(MPI_File *file, int *code, ...) {
    (void)file, (void)code;
    errors++;
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int values[10], back[40], mode = -1, flag = -1, size = -1, half_rank = -1, half_size = -1;
    for (int i = 0; i < 10; i++) values[i] = 100 * trial_rank + i;
    char own[64], half_name[64], hint[64] = "";
    MPI_Status status;
    MPI_Errhandler handler, found;
    MPI_Comm half;
    MPI_Group group;
    MPI_Info info;

    MPI_File all = files_open(MPI_COMM_WORLD, "all", MPI_MODE_CREATE | MPI_MODE_RDWR);
    MUST(MPI_File_seek(all, trial_rank * 40, MPI_SEEK_SET));
    MUST(MPI_File_write(all, values, 5, MPI_INT, &status));
    MUST(MPI_File_create_errhandler(on_error, &handler));
    MUST(MPI_File_set_errhandler(all, handler));
    MUST(MPI_File_set_atomicity(all, 1));

    snprintf(own, sizeof own, "own.%d", trial_rank);
    MUST(MPI_Info_create(&info));
    MUST(MPI_Info_set(info, "access_style", "write_once"));
    MPI_File mine;
    MUST(MPI_File_open(MPI_COMM_SELF, files_path(own), MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE, info, &mine));
    MUST(MPI_Info_free(&info));
    MUST(MPI_File_write(mine, values, 3 + trial_rank, MPI_INT, &status));

    MUST(MPI_Comm_split(MPI_COMM_WORLD, trial_rank % 2, -trial_rank, &half));
    MUST(MPI_Comm_rank(half, &half_rank));
    MUST(MPI_Comm_size(half, &half_size));
    snprintf(half_name, sizeof half_name, "half.%d", trial_rank % 2);
    MPI_File first = files_open(half, half_name, MPI_MODE_CREATE | MPI_MODE_RDWR);
    MUST(MPI_File_write_at(first, half_rank * 40, values, 10, MPI_INT, &status));
    MUST(MPI_File_close(&first));
    MPI_File appended = files_open(half, half_name, MPI_MODE_APPEND | MPI_MODE_RDWR);
    MPI_File read = files_open(half, half_name, MPI_MODE_RDONLY);
    MUST(MPI_Comm_free(&half));
    MUST(MPI_File_read(read, back, 7, MPI_INT, &status));
    CHECK(files_position(appended) == half_size * 40, "position %ld", files_position(appended));

    trial_hold();

    CHECK(files_position(all) == trial_rank * 40 + 20, "position %ld", files_position(all));
    MUST(MPI_File_get_amode(all, &mode));
    CHECK(mode == (MPI_MODE_CREATE | MPI_MODE_RDWR), "mode %d", mode);
    MUST(MPI_File_get_atomicity(all, &flag));
    CHECK(flag == 1, "atomicity %d", flag);
    MUST(MPI_File_get_errhandler(all, &found));
    CHECK(found == handler, "%s", "another error handler");
    CHECK(MPI_File_seek(all, -1, MPI_SEEK_SET) != MPI_SUCCESS && errors == 1, "%d errors", errors);
    MUST(MPI_File_write_all(all, values + 5, 5, MPI_INT, &status));
    CHECK(files_count(&status, MPI_INT) == 5, "%d elements", files_count(&status, MPI_INT));
    MUST(MPI_File_sync(all));
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    int peer = (trial_rank + 1) % trial_size;
    MUST(MPI_File_read_at(all, peer * 40, back, 10, MPI_INT, &status));
    for (int i = 0; i < 10; i++) CHECK(back[i] == 100 * peer + i, "element %d is %d", i, back[i]);
    MUST(MPI_File_get_group(all, &group));
    MUST(MPI_Group_size(group, &size));
    CHECK(size == trial_size, "%d members", size);
    MUST(MPI_Group_free(&group));

    MUST(MPI_File_get_amode(mine, &mode));
    CHECK(mode == (MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE), "mode %d", mode);
    CHECK(files_position(mine) == 4 * (3 + trial_rank), "position %ld", files_position(mine));
    MUST(MPI_File_get_info(mine, &info));
    MUST(MPI_Info_get(info, "access_style", sizeof hint - 1, hint, &flag));
    CHECK(!flag || strcmp(hint, "write_once") == 0, "hint %s", hint);
    MUST(MPI_Info_free(&info));
    MUST(MPI_File_write(mine, values, 1, MPI_INT, &status));
    CHECK(files_size(mine) == 4 * (4 + trial_rank), "%ld bytes", files_size(mine));
    MUST(MPI_File_close(&mine));
    CHECK(access(files_path(own), F_OK) != 0, "%s is there", own);

    CHECK(files_position(read) == 28, "position %ld", files_position(read));
    MUST(MPI_File_read(read, back, 3, MPI_INT, &status));
    for (int i = 0; i < 3; i++) CHECK(back[i] % 100 == 7 + i, "element %d is %d", i, back[i]);
    CHECK(files_position(appended) == half_size * 40, "position %ld", files_position(appended));
    MUST(MPI_File_seek(appended, half_rank * 4, MPI_SEEK_CUR));
    MUST(MPI_File_write(appended, &half_rank, 1, MPI_INT, &status));
    MUST(MPI_File_sync(appended));
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    MUST(MPI_File_read_at(appended, half_size * 40, back, half_size, MPI_INT, &status));
    for (int i = 0; i < half_size; i++) CHECK(back[i] == i, "appended %d", back[i]);
    MUST(MPI_File_close(&read));
    MUST(MPI_File_close(&appended));
    MUST(MPI_Errhandler_free(&handler));
    MUST(MPI_File_close(&all));
    CHECK(all == MPI_FILE_NULL, "%s", "a file is open");
    return trial_finish();
}
