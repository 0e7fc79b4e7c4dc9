/* Messages that a rank has sent to itself, on COMM_SELF, the world and a duplicate, are there afterwards.
 * trial: ranks=1,2 */
#include "../common.h"

#define LARGE (1 << 20)

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    MPI_Comm comms[3] = {MPI_COMM_SELF, MPI_COMM_WORLD, MPI_COMM_NULL};
    MUST(MPI_Comm_dup(MPI_COMM_SELF, &comms[2]));
    MPI_Request requests[3], receive;
    int values[3], *large = malloc(LARGE * sizeof(int)), *got = malloc(LARGE * sizeof(int)), early = -1;
    for (int i = 0; i < LARGE; i++) large[i] = i ^ 0x55aa;
    for (int i = 0; i < 3; i++) {
        int me = i == 1 ? trial_rank : 0;
        values[i] = 50 + i;
        MUST(MPI_Isend(&values[i], 1, MPI_INT, me, i, comms[i], &requests[i]));
    }
    MUST(MPI_Irecv(got, LARGE, MPI_INT, 0, 77, MPI_COMM_SELF, &receive));
    MUST(MPI_Irecv(&early, 1, MPI_INT, MPI_ANY_SOURCE, 2, comms[2], &requests[2]));
    trial_hold();
    MUST(MPI_Wait(&requests[2], MPI_STATUS_IGNORE));
    CHECK(early == 52, "got %d", early);
    for (int i = 0; i < 2; i++) {
        int value = -1;
        MPI_Status status;
        MUST(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, i, comms[i], &status));
        CHECK(value == 50 + i && status.MPI_SOURCE == (i == 1 ? trial_rank : 0), "communicator %d: got %d", i, value);
        MUST(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
    }
    MUST(MPI_Send(large, LARGE, MPI_INT, 0, 77, MPI_COMM_SELF));
    MUST(MPI_Wait(&receive, MPI_STATUS_IGNORE));
    CHECK(memcmp(large, got, LARGE * sizeof(int)) == 0, "the large message differs");
    MUST(MPI_Comm_free(&comms[2]));
    return trial_finish();
}
