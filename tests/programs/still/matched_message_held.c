/* A message that Mprobe has matched, small and large, is held by its handle and received afterwards.
 * trial: ranks=2 */
#include "../common.h"

#define LARGE (2u << 20)

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    char *large = malloc(LARGE);
    int small = 0;
    if (trial_rank == 0) {
        small = 31415;
        trial_fill(large, LARGE, 5);
        MPI_Request request;
        MUST(MPI_Send(&small, 1, MPI_INT, 1, 1, MPI_COMM_WORLD));
        MUST(MPI_Isend(large, LARGE, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &request));
        small = 27182;
        MUST(MPI_Send(&small, 1, MPI_INT, 1, 1, MPI_COMM_WORLD));
        trial_hold();
        MUST(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else {
        MPI_Message first, second;
        MPI_Status status;
        int count = 0;
        MUST(MPI_Mprobe(0, 1, MPI_COMM_WORLD, &first, &status));
        MUST(MPI_Mprobe(0, 2, MPI_COMM_WORLD, &second, &status));
        trial_hold();
        /* The one not matched is still to be found, and is not the matched one. */
        MUST(MPI_Recv(&small, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(small == 27182, "the later message holds %d", small);
        MUST(MPI_Mrecv(large, LARGE, MPI_BYTE, &second, &status));
        MUST(MPI_Get_count(&status, MPI_BYTE, &count));
        CHECK(count == (int)LARGE && status.MPI_TAG == 2, "%d bytes with tag %d", count, status.MPI_TAG);
        CHECK(trial_differs(large, LARGE, 5) < 0, "wrong from byte %ld on", trial_differs(large, LARGE, 5));
        MUST(MPI_Mrecv(&small, 1, MPI_INT, &first, &status));
        CHECK(small == 31415 && status.MPI_TAG == 1, "the matched message holds %d", small);
    }
    return trial_finish();
}
