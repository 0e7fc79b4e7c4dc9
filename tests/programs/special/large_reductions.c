/* Reductions of more elements than an int holds: in parts, each element once, by the application's own operator. The elements are empty, so that nothing of it takes room;
 * the operator counts them.
 * trial: ranks=2 */
#include "../common.h"

static const MPI_Count many = 3LL * (1 << 30) + 5;
static MPI_Count counted;

static void count(void *in, void *inout, int *length, MPI_Datatype *type) {
    (void)in, (void)inout, (void)type;
    counted += *length;
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    MPI_Datatype empty;
    MPI_Op op;
    int room = 0, same = 0;
    MUST(MPI_Type_contiguous(0, MPI_INT, &empty));
    MUST(MPI_Type_commit(&empty));
    MUST(MPI_Op_create(count, 1, &op));
    MUST(MPI_Reduce_local_c(&room, &same, many, empty, op));
    CHECK(counted == many, "%lld of %lld", (long long)counted, (long long)many);

    trial_ready();
    trial_wait();

    counted = 0;
    MUST(MPI_Reduce_local_c(&room, &same, many, empty, op));
    CHECK(counted == many, "again %lld of %lld", (long long)counted, (long long)many);
    /* An implementation may see that there is nothing to be done. */
    MUST(MPI_Allreduce_c(MPI_IN_PLACE, &room, many, empty, op, MPI_COMM_WORLD));
    MUST(MPI_Op_free(&op));
    MUST(MPI_Type_free(&empty));
    return trial_finish();
}
