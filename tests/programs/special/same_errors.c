/* Wrong arguments give the errors that they give natively, and crash nothing.
 * trial: ranks=1 flags=-Wno-nonnull,-Wno-stringop-overflow */
#include "../same.h"

#define GIVES(call) say_class(#call, call)

int main(int argc, char **argv) {
    begin(argc, argv);
    MPI_Comm world = MPI_COMM_WORLD, new_comm;
    MPI_Win window, no_window = MPI_WIN_NULL;
    MPI_File file, no_file = MPI_FILE_NULL;
    MPI_Request request;
    MPI_Group group;
    void *base;
    MPI_Offset offset;
    MPI_Datatype match, uncommitted;
    MPI_Status status;
    int x = 1, y = 0, number;
    char port[MPI_MAX_PORT_NAME];
    memset(&status, 0, sizeof status);
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);

    GIVES(MPI_Bcast(&x, 1, MPI_INT, MPI_PROC_NULL, world));
    GIVES(MPI_Bcast(&x, 1, MPI_INT, -3, world));
    GIVES(MPI_Bcast(&x, 1, MPI_INT, MPI_ANY_SOURCE, world));
    GIVES(MPI_Bcast(&x, 1, MPI_DATATYPE_NULL, 0, world));
    GIVES(MPI_Bcast(&x, 1, NULL, 0, world));
    GIVES(MPI_Barrier(MPI_COMM_NULL));
    GIVES(MPI_Barrier(NULL));
    GIVES(MPI_Gather(&x, 1, MPI_INT, &y, 1, MPI_INT, MPI_ROOT, world));
    GIVES(MPI_Reduce(&x, &y, -1, MPI_INT, MPI_SUM, 0, world));
    GIVES(MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_OP_NULL, world));
    GIVES(MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, NULL));
    GIVES(MPI_Allreduce(&x, &y, 1, MPI_FLOAT, MPI_BAND, world));
    GIVES(MPI_Reduce_local(&x, &y, -1, MPI_INT, MPI_SUM));
    GIVES(MPI_Ibcast(&x, 1, MPI_INT, 7, world, &request));
    MPI_Type_contiguous(3, MPI_INT, &uncommitted);
    GIVES(MPI_Bcast(&x, 1, uncommitted, 0, world));
    MPI_Type_free(&uncommitted);

    GIVES(MPI_Type_size(MPI_DATATYPE_NULL, &number));
    GIVES(MPI_Type_size(NULL, &number));
    GIVES(MPI_Type_match_size(9, 8, &match));
    GIVES(MPI_Type_get_attr(MPI_INT, MPI_KEYVAL_INVALID, &x, &number));
    GIVES(MPI_Type_set_attr(MPI_INT, MPI_KEYVAL_INVALID, &x));
    GIVES(MPI_Get_count(&status, MPI_DATATYPE_NULL, &number));
    GIVES(MPI_Status_set_elements(&status, MPI_DATATYPE_NULL, 1));
    GIVES(MPI_Op_commutative(MPI_OP_NULL, &number));
    GIVES(MPI_Pack(&x, 1, MPI_INT, &y, 1, &number, world));
    GIVES(MPI_Topo_test(MPI_COMM_NULL, &number));
    GIVES(MPI_Cart_coords(world, 0, 1, &number));
    GIVES(MPI_Dims_create(6, 2, (int[]){4, 0}));
    GIVES(MPI_Get_processor_name(NULL, &number));

    GIVES(MPI_Win_create(&x, -1, 1, MPI_INFO_NULL, world, &window));
    GIVES(MPI_Win_create(&x, 4, 1, NULL, world, &window));
    GIVES(MPI_Win_create(&x, 4, 1, MPI_INFO_NULL, MPI_COMM_NULL, &window));
    GIVES(MPI_Win_create(&x, 4, 1, MPI_INFO_NULL, world, NULL));
    GIVES(MPI_Win_create(&x, 4, 1, NULL, world, NULL));
    GIVES(MPI_Win_create(&x, 4, 0, MPI_INFO_NULL, world, &window));
    GIVES(MPI_Win_create_dynamic(MPI_INFO_NULL, world, NULL));
    GIVES(MPI_Win_create_dynamic(NULL, world, &window));
    GIVES(MPI_Win_create_dynamic(MPI_INFO_NULL, NULL, &window));
    GIVES(MPI_Win_allocate(4, 1, MPI_INFO_NULL, world, &base, NULL));
    GIVES(MPI_Win_allocate(-4, 1, MPI_INFO_NULL, world, &base, &window));
    GIVES(MPI_Win_allocate(4, 1, NULL, world, &base, &window));
    GIVES(MPI_Win_allocate(4, 1, MPI_INFO_NULL, MPI_COMM_NULL, &base, &window));
    GIVES(MPI_Win_allocate_shared(4, 1, MPI_INFO_NULL, world, &base, NULL));
    GIVES(MPI_Win_set_name(MPI_WIN_NULL, "name"));
    GIVES(MPI_Put(&x, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_WIN_NULL));
    GIVES(MPI_Win_get_group(MPI_WIN_NULL, &group));
    GIVES(MPI_Win_fence(0, MPI_WIN_NULL));
    GIVES(MPI_Win_lock(77, 0, 0, MPI_WIN_NULL));
    GIVES(MPI_Win_free(&no_window));
    GIVES(MPI_File_open(world, "/nonexistent/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    GIVES(MPI_File_open(world, "/dev/null", MPI_MODE_RDONLY | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    GIVES(MPI_File_delete("/nonexistent/file", MPI_INFO_NULL));
    GIVES(MPI_File_sync(MPI_FILE_NULL));
    GIVES(MPI_File_close(&no_file));
    GIVES(MPI_File_close(NULL));
    GIVES(MPI_File_open(world, "/dev/null", MPI_MODE_RDONLY, NULL, &file));
    GIVES(MPI_File_open(MPI_COMM_NULL, "/dev/null", MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    GIVES(MPI_File_delete("/nonexistent/file", NULL));
    GIVES(MPI_File_read(no_file, &x, 1, MPI_INT, &status));
    GIVES(MPI_File_set_view(no_file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    GIVES(MPI_File_get_size(no_file, &offset));
    GIVES(MPI_Comm_spawn("/nonexistent", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 5, world, &new_comm,
                         MPI_ERRCODES_IGNORE));
    GIVES(MPI_Lookup_name("nobody", MPI_INFO_NULL, port));
    MPI_Finalize();
    return 0;
}
