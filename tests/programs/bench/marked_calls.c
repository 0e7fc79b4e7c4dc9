/* Calls between marks, for `count-instructions`: `int3` with the call's name in rax before it, and with 0 behind it. Each
 * call has been made before, so that nothing of a first time is counted; what it waits for is there already. The last eight are marked,
 * of windows of calls the last.
 *
 *   count-instructions [stillpoint run --] marked_calls
 *
 * With -DGPU it begins with a GPU's driver first, and uses none of its devices.
 */
#include <mpi.h>
#ifdef GPU
#include <dlfcn.h>
#endif

#define MARK(name) __asm__ volatile("int3" : : "a"(name) : "memory")
#define MARKED(name, before, call, after) MARKED_LAST(8, name, before, call, after)
#define MARKED_LAST(times, name, before, call, after) \
    for (int time = 0; time < 20; time++) { \
        before; \
        if (time < 20 - times) { \
            call; \
        } else { \
            MARK(name); \
            call; \
            MARK(0L); \
        } \
        after; \
    }
#define NOTHING (void)0

int main(int argc, char **argv) {
    int rank, flag;
    char out[8] = {0}, in[8];
    double one = 1, sum;
    MPI_Request request, other;
    MPI_Status status;
    MPI_Init(&argc, &argv);
#ifdef GPU
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    int (*begin)(unsigned) = driver ? (int (*)(unsigned))dlsym(driver, "cuInit") : 0;
    if (!begin || begin(0)) MPI_Abort(MPI_COMM_WORLD, 1);
#endif
    MPI_Comm world = MPI_COMM_WORLD;
    /* To oneself: no other rank's speed has a part in it. */
    MARKED("nothing", NOTHING, NOTHING, NOTHING);
    MARKED("MPI_Comm_rank", NOTHING, MPI_Comm_rank(world, &rank), NOTHING);
    MARKED("MPI_Comm_size", NOTHING, MPI_Comm_size(world, &rank), NOTHING);
    rank = 0;
    MARKED("MPI_Wtime", NOTHING, MPI_Wtime(), NOTHING);
    MARKED("MPI_Barrier", NOTHING, MPI_Barrier(world), NOTHING);
    MARKED("MPI_Bcast", NOTHING, MPI_Bcast(&one, 1, MPI_DOUBLE, 0, world), NOTHING);
    MARKED("MPI_Allreduce", NOTHING, MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, world), NOTHING);
    MARKED("MPI_Alltoall", NOTHING, MPI_Alltoall(out, 8, MPI_CHAR, in, 8, MPI_CHAR, world), NOTHING);
    double several[64] = {0};
    MARKED("MPI_Allreduce/in-place", NOTHING, MPI_Allreduce(MPI_IN_PLACE, several, 1, MPI_DOUBLE, MPI_SUM, world), NOTHING);
    MARKED("MPI_Allreduce/in-place/512-B", NOTHING, MPI_Allreduce(MPI_IN_PLACE, several, 64, MPI_DOUBLE, MPI_SUM, world), NOTHING);
    MARKED("MPI_Reduce_scatter_block/in-place", NOTHING, MPI_Reduce_scatter_block(MPI_IN_PLACE, several, 1, MPI_DOUBLE, MPI_SUM, world), NOTHING);
    MARKED("MPI_Scan/in-place", NOTHING, MPI_Scan(MPI_IN_PLACE, several, 1, MPI_DOUBLE, MPI_SUM, world), NOTHING);
    MARKED("MPI_Alltoall/in-place", NOTHING, MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, several, 1, MPI_DOUBLE, world), NOTHING);
    MARKED("MPI_Allgather/in-place", NOTHING, MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, several, 1, MPI_DOUBLE, world), NOTHING);
    MARKED("MPI_Allgather", NOTHING, MPI_Allgather(&one, 1, MPI_DOUBLE, several, 1, MPI_DOUBLE, world), NOTHING);
    MARKED("MPI_Scan", NOTHING, MPI_Scan(&one, several, 1, MPI_DOUBLE, MPI_SUM, world), NOTHING);
    MARKED("MPI_Iallreduce+MPI_Wait", NOTHING,
           (MPI_Iallreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, world, &request), MPI_Wait(&request, MPI_STATUS_IGNORE)),
           NOTHING);
    MARKED("MPI_Send", MPI_Irecv(in, 8, MPI_CHAR, rank, 0, world, &request),
           MPI_Send(out, 8, MPI_CHAR, rank, 0, world), MPI_Wait(&request, &status));
    MARKED("MPI_Recv", MPI_Isend(out, 8, MPI_CHAR, rank, 0, world, &request),
           MPI_Recv(in, 8, MPI_CHAR, rank, 0, world, &status), MPI_Wait(&request, &status));
    MARKED("MPI_Isend+MPI_Wait", MPI_Irecv(in, 8, MPI_CHAR, rank, 0, world, &other),
           (MPI_Isend(out, 8, MPI_CHAR, rank, 0, world, &request), MPI_Wait(&request, MPI_STATUS_IGNORE)),
           MPI_Wait(&other, &status));
    MARKED("MPI_Irecv+MPI_Wait", MPI_Isend(out, 8, MPI_CHAR, rank, 0, world, &other),
           (MPI_Irecv(in, 8, MPI_CHAR, rank, 0, world, &request), MPI_Wait(&request, &status)),
           MPI_Wait(&other, &status));
    MPI_Request posted[2];
    int index, indices[2];
    MPI_Status statuses[2];
    for (int i = 0; i < 2; i++) MPI_Irecv(in, 8, MPI_CHAR, rank, 1 + i, world, &posted[i]);
    MARKED("MPI_Test, not over", NOTHING, MPI_Test(&posted[0], &flag, &status), NOTHING);
    MARKED("MPI_Testany, not over", NOTHING, MPI_Testany(1, posted, &index, &flag, &status), NOTHING);
    MARKED("MPI_Testany of 2, not over", NOTHING, MPI_Testany(2, posted, &index, &flag, &status), NOTHING);
    MARKED("MPI_Testall of 2, not over", NOTHING, MPI_Testall(2, posted, &flag, statuses), NOTHING);
    MARKED("MPI_Testsome of 2, not over", NOTHING, MPI_Testsome(2, posted, &index, indices, statuses), NOTHING);
    for (int i = 0; i < 2; i++) MPI_Send(out, 8, MPI_CHAR, rank, 1 + i, world);
    MPI_Waitall(2, posted, statuses);
#define POST \
    for (int i = 0; i < 2; i++) MPI_Irecv(in, 8, MPI_CHAR, rank, 1 + i, world, &posted[i]); \
    for (int i = 0; i < 2; i++) MPI_Send(out, 8, MPI_CHAR, rank, 1 + i, world)
    MARKED("MPI_Testany of 2, over", POST, MPI_Testany(2, posted, &index, &flag, &status), MPI_Wait(&posted[1 - index], &status));
    MARKED("MPI_Waitany of 2", POST, MPI_Waitany(2, posted, &index, &status), MPI_Wait(&posted[1 - index], &status));
    MARKED("MPI_Testall of 2, over", POST, MPI_Testall(2, posted, &flag, statuses), MPI_Waitall(2, posted, statuses));
    MARKED("MPI_Waitall of 2", POST, MPI_Waitall(2, posted, statuses), NOTHING);
    MARKED("MPI_Waitsome of 2", POST, MPI_Waitsome(2, posted, &index, indices, statuses), MPI_Waitall(2, posted, statuses));
    /* As a window of messages is: the begins and what completes them, to be divided by 64. */
#define WINDOW 64
    MPI_Request sends[WINDOW], receives[WINDOW];
#define EACH(i) for (int i = 0; i < WINDOW; i++)
#define SEND_ALL EACH(i) MPI_Isend(out, 8, MPI_CHAR, rank, 3, world, &sends[i])
#define RECEIVE_ALL EACH(i) MPI_Irecv(in, 8, MPI_CHAR, rank, 3, world, &receives[i])
    MARKED_LAST(1, "64 MPI_Isend", RECEIVE_ALL, SEND_ALL,
           MPI_Waitall(WINDOW, sends, MPI_STATUSES_IGNORE); MPI_Waitall(WINDOW, receives, MPI_STATUSES_IGNORE));
    MARKED_LAST(1, "64 MPI_Irecv", SEND_ALL, RECEIVE_ALL,
           MPI_Waitall(WINDOW, sends, MPI_STATUSES_IGNORE); MPI_Waitall(WINDOW, receives, MPI_STATUSES_IGNORE));
    MARKED_LAST(1, "MPI_Waitall of 64 sends", RECEIVE_ALL; SEND_ALL, MPI_Waitall(WINDOW, sends, MPI_STATUSES_IGNORE),
           MPI_Waitall(WINDOW, receives, MPI_STATUSES_IGNORE));
    MARKED_LAST(1, "MPI_Waitall of 64 receives", SEND_ALL; RECEIVE_ALL, MPI_Waitall(WINDOW, receives, MPI_STATUSES_IGNORE),
           MPI_Waitall(WINDOW, sends, MPI_STATUSES_IGNORE));
    MPI_Message message;
    MARKED("MPI_Improbe", NOTHING, MPI_Improbe(MPI_ANY_SOURCE, 0, world, &flag, &message, &status), NOTHING);
    MARKED("MPI_Wtick", NOTHING, MPI_Wtick(), NOTHING);
    MARKED("MPI_Test of null", posted[0] = MPI_REQUEST_NULL, MPI_Test(posted, &flag, &status), NOTHING);
    MARKED("MPI_Get_count", NOTHING, MPI_Get_count(&status, MPI_CHAR, &index), NOTHING);
    MARKED("MPI_Iprobe", NOTHING, MPI_Iprobe(MPI_ANY_SOURCE, 0, world, &flag, &status), NOTHING);
    MARKED("MPI_Pack", int at = 0, MPI_Pack(out, 8, MPI_CHAR, in, 8, &at, world), NOTHING);
    MPI_Comm copy;
    MARKED("MPI_Comm_dup", NOTHING, MPI_Comm_dup(world, &copy), MPI_Comm_free(&copy));
    MPI_Finalize();
    return 0;
}
