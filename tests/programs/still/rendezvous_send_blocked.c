/* An MPI_Send too large for an eager message is blocked on a receiver that is outside MPI.
 * trial: ranks=2 */
#include "../common.h"

#define BYTES (24u << 20)

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    char *buffer = malloc(BYTES);
    if (trial_rank == 0) {
        trial_fill(buffer, BYTES, 99);
        trial_ready();
        MUST(MPI_Send(buffer, BYTES, MPI_BYTE, 1, 3, MPI_COMM_WORLD));
        CHECK(trial_differs(buffer, BYTES, 99) < 0, "the send buffer was changed");
    } else {
        memset(buffer, 0, BYTES);
        trial_hold();
        MPI_Status status;
        int count = 0;
        MUST(MPI_Probe(0, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
        MUST(MPI_Get_count(&status, MPI_BYTE, &count));
        CHECK(count == (int)BYTES, "probed %d bytes", count);
        MUST(MPI_Recv(buffer, BYTES, MPI_BYTE, 0, 3, MPI_COMM_WORLD, &status));
        CHECK(trial_differs(buffer, BYTES, 99) < 0, "wrong from byte %ld on", trial_differs(buffer, BYTES, 99));
    }
    free(buffer);
    return trial_finish();
}
