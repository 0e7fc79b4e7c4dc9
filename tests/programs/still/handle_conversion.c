/* Fortran handles taken before lead to the same objects afterwards, and back.
 * trial: ranks=2 */
#include "../common.h"

static void nothing(void *in, void *inout, int *count, MPI_Datatype *type) { (void)in, (void)inout, (void)count, (void)type; }

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    MPI_Comm comm;
    MPI_Group group;
    MPI_Datatype type;
    MPI_Op op;
    MPI_Info info;
    MPI_Errhandler handler;
    MPI_Request request;
    int value = -1, peer = 1 - trial_rank;
    MUST(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    MUST(MPI_Comm_group(comm, &group));
    MUST(MPI_Type_contiguous(3, MPI_INT, &type));
    MUST(MPI_Type_commit(&type));
    MUST(MPI_Op_create(nothing, 1, &op));
    MUST(MPI_Info_create(&info));
    handler = MPI_ERRORS_RETURN;
    MUST(MPI_Irecv(&value, 1, MPI_INT, peer, 1, comm, &request));
    MPI_Fint f[8] = {MPI_Comm_c2f(comm), MPI_Group_c2f(group), MPI_Type_c2f(type), MPI_Op_c2f(op), MPI_Info_c2f(info),
                     MPI_Errhandler_c2f(handler), MPI_Request_c2f(request), MPI_Comm_c2f(MPI_COMM_WORLD)};
    MPI_Fint integer = MPI_Type_c2f(MPI_INT), sum = MPI_Op_c2f(MPI_SUM), null = MPI_Comm_c2f(MPI_COMM_NULL);
    trial_hold();
    CHECK(MPI_Comm_f2c(f[0]) == comm, "communicator");
    CHECK(MPI_Group_f2c(f[1]) == group, "group");
    CHECK(MPI_Type_f2c(f[2]) == type, "datatype");
    CHECK(MPI_Op_f2c(f[3]) == op, "operator");
    CHECK(MPI_Info_f2c(f[4]) == info, "info");
    CHECK(MPI_Errhandler_f2c(f[5]) == handler, "error handler");
    CHECK(MPI_Request_f2c(f[6]) == request, "request");
    CHECK(MPI_Comm_f2c(f[7]) == MPI_COMM_WORLD, "world");
    CHECK(MPI_Type_f2c(integer) == MPI_INT && MPI_Op_f2c(sum) == MPI_SUM, "predefined");
    CHECK(MPI_Comm_f2c(null) == MPI_COMM_NULL, "null");
    CHECK(MPI_Comm_c2f(comm) == f[0] && MPI_Type_c2f(type) == f[2], "taken again, they differ");
    int sent = 70 + trial_rank;
    MUST(MPI_Send(&sent, 1, MPI_INT, peer, 1, MPI_Comm_f2c(f[0])));
    MPI_Status status, copy;
    MUST(MPI_Wait(&request, &status));
    CHECK(value == 70 + peer, "got %d", value);
    MPI_Fint f_status[sizeof(MPI_Status) / sizeof(MPI_Fint) + 8];
    MUST(MPI_Status_c2f(&status, f_status));
    MUST(MPI_Status_f2c(f_status, &copy));
    int count = 0;
    MUST(MPI_Get_count(&copy, MPI_INT, &count));
    CHECK(copy.MPI_SOURCE == peer && copy.MPI_TAG == 1 && count == 1, "status through Fortran: %d elements", count);
    MUST(MPI_Op_free(&op));
    MUST(MPI_Info_free(&info));
    MUST(MPI_Type_free(&type));
    MUST(MPI_Group_free(&group));
    MUST(MPI_Comm_free(&comm));
    return trial_finish();
}
