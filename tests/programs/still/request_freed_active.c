/* Send requests that were freed while active: their messages arrive all the same.
 * trial: ranks=2 */
#include "../common.h"

#define LARGE (1 << 20)

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int *large = malloc(LARGE * sizeof(int)), small = 1234;
    if (trial_rank == 0) {
        MPI_Request request;
        for (int i = 0; i < LARGE; i++) large[i] = 3 * i;
        MUST(MPI_Isend(&small, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &request));
        MUST(MPI_Request_free(&request));
        MUST(MPI_Isend(large, LARGE, MPI_INT, 1, 2, MPI_COMM_WORLD, &request));
        MUST(MPI_Request_free(&request));
        CHECK(request == MPI_REQUEST_NULL, "freed, not null");
        trial_hold();
        /* The receiver's answer says that the buffer may be used again. */
        MUST(MPI_Recv(&small, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(small == 4321, "answer %d", small);
    } else {
        int got = 0, wrong = 0;
        trial_hold();
        MUST(MPI_Recv(large, LARGE, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        MUST(MPI_Recv(&got, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = 0; i < LARGE; i++) wrong += large[i] != 3 * i;
        CHECK(wrong == 0 && got == 1234, "%d elements wrong, small message %d", wrong, got);
        small = 4321;
        MUST(MPI_Send(&small, 1, MPI_INT, 0, 3, MPI_COMM_WORLD));
    }
    return trial_finish();
}
