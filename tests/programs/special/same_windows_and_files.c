/* Windows and MPI files, which no image can hold, are passed through faithfully.
 * trial: ranks=3 */
#include "../same.h"

static void windows(void) {
    MPI_Win window;
    MPI_Request request;
    MPI_Group all, next_only, before_only;
    int *memory, there, *kind, next = (rank + 1) % size, before = (rank + size - 1) % size, old, one = 1;
    int value = 10 + rank, members;
    void *base;
    MPI_Win_allocate(16 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    for (int i = 0; i < 16; i++) memory[i] = rank;
    MPI_Win_get_attr(window, MPI_WIN_BASE, &base, &there);
    say("base", there && base == (void *)memory);
    MPI_Win_get_attr(window, MPI_WIN_CREATE_FLAVOR, &kind, &there);
    say("flavor", *kind == MPI_WIN_FLAVOR_ALLOCATE);
    MPI_Win_get_attr(window, MPI_WIN_MODEL, &kind, &there);
    say("model", *kind);

    MPI_Win_fence(MPI_MODE_NOPRECEDE, window);
    MPI_Put(&value, 1, MPI_INT, next, 3, 1, MPI_INT, window);
    MPI_Accumulate(&value, 1, MPI_INT, next, 5, 1, MPI_INT, MPI_SUM, window);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
    say_numbers("after fence", memory, 8);

    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, window);
    MPI_Fetch_and_op(&one, &old, MPI_INT, next, 8, MPI_SUM, window);
    MPI_Win_unlock(next, window);
    say("fetched", old);
    MPI_Win_lock_all(0, window);
    MPI_Rput(&value, 1, MPI_INT, next, 9, 1, MPI_INT, window, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    say_numbers("after unlock", memory + 8, 2);

    MPI_Win_get_group(window, &all);
    MPI_Group_size(all, &members);
    say("members", members);
    MPI_Group_incl(all, 1, &next, &next_only);
    MPI_Group_incl(all, 1, &before, &before_only);
    MPI_Win_post(before_only, 0, window);
    MPI_Win_start(next_only, 0, window);
    MPI_Put(&value, 1, MPI_INT, next, 1, 1, MPI_INT, window);
    MPI_Win_complete(window);
    MPI_Win_wait(window);
    say_numbers("after wait", memory, 3);
    MPI_Group_free(&before_only);
    MPI_Group_free(&next_only);
    MPI_Group_free(&all);
    MPI_Win_free(&window);
    say("window is null", window == MPI_WIN_NULL);
}

static void files(void) {
    char name[256];
    MPI_File file;
    MPI_Info info;
    MPI_Status status;
    MPI_Request request;
    MPI_Datatype pair, element, view;
    MPI_Offset at;
    MPI_Group group;
    char representation[MPI_MAX_DATAREP_STRING];
    int mode, count, numbers[2] = {100 * rank, 100 * rank + 1}, back[2] = {-1, -1}, bytes, members;
    const char *folder = getenv("TMPDIR");
    snprintf(name, sizeof name, "%s/same_files.%s", folder ? folder : "/tmp", getenv("SAME_RUN"));
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Info_create(&info);
    MPI_Info_set(info, "cb_nodes", "1");
    int wanted = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    say_class("open", MPI_File_open(MPI_COMM_WORLD, name, wanted, info, &file));
    MPI_Info_free(&info);
    MPI_File_get_amode(file, &mode);
    say("mode", mode == wanted);
    MPI_File_set_view(file, 8 * rank, MPI_INT, pair, "native", MPI_INFO_NULL);
    MPI_File_iwrite(file, numbers, 2, MPI_INT, &request);
    MPI_Wait(&request, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    say("written", count);
    MPI_File_seek(file, 0, MPI_SEEK_SET);
    MPI_File_read_all(file, back, 2, MPI_INT, &status);
    say_numbers("read", back, 2);
    MPI_File_get_view(file, &at, &element, &view, representation);
    MPI_Type_size(view, &bytes);
    say_numbers("view", (int[]){at, element == MPI_INT, bytes, strcmp(representation, "native")}, 4);
    if (view != MPI_INT) MPI_Type_free(&view);
    MPI_File_get_group(file, &group);
    MPI_Group_size(group, &members);
    say("members", members);
    MPI_Group_free(&group);
    MPI_File_read_all_begin(file, back, 0, MPI_INT);
    MPI_File_read_all_end(file, back, &status);
    MPI_File_iread_all(file, back, 0, MPI_INT, &request);
    MPI_Wait(&request, &status);
    MPI_File_close(&file);
    say("file is null", file == MPI_FILE_NULL);
    MPI_Type_free(&pair);
    int code = MPI_File_open(MPI_COMM_WORLD, "/nonexistent/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    say_class("no such file", code);
}

int main(int argc, char **argv) {
    begin(argc, argv);
    windows();
    files();
    MPI_Finalize();
    return 0;
}
