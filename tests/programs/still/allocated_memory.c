/* Memory from MPI_Alloc_mem keeps its address and contents, takes part in messages, and can be freed.
 * trial: ranks=2 */
#include "../common.h"

#define BYTES (2 << 20)

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    char *blocks[3], *more = NULL;
    int peer = 1 - trial_rank;
    for (int i = 0; i < 3; i++) {
        MUST(MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &blocks[i]));
        trial_fill(blocks[i], BYTES, 10 * trial_rank + i);
    }
    MPI_Request request;
    MUST(MPI_Irecv(blocks[2], BYTES, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &request));
    MUST(MPI_Free_mem(blocks[0]));
    trial_hold();
    CHECK(trial_differs(blocks[1], BYTES, 10 * trial_rank + 1) < 0, "changed");
    MUST(MPI_Send(blocks[1], BYTES, MPI_BYTE, peer, 1, MPI_COMM_WORLD));
    MUST(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(trial_differs(blocks[2], BYTES, 10 * peer + 1) < 0, "wrong message");
    MUST(MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &more));
    memset(more, 1, BYTES);
    MUST(MPI_Free_mem(more));
    MUST(MPI_Free_mem(blocks[1]));
    MUST(MPI_Free_mem(blocks[2]));
    return trial_finish();
}
