/* All-to-all exchanges of megabytes, blocking and not, with rendezvous messages across.
 * trial: ranks=2,4 */
#include "../moving.h"

#define EACH 60000

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int n = trial_size, counts[8], places[8], next = (trial_rank + 1) % n, previous = (trial_rank + n - 1) % n;
    uint64_t *out = malloc((size_t)n * EACH * 8), *in = malloc((size_t)n * EACH * 8), *across = malloc((size_t)EACH * 8);
    for (uint64_t round = 0; moving_agree(round, MPI_COMM_WORLD); round++) {
        MPI_Request requests[3];
        for (int i = 0; i < n; i++) counts[i] = EACH - (int)(round % 100), places[i] = i * EACH;
        for (int to = 0; to < n; to++)
            for (int k = 0; k < EACH; k += 50) out[to * EACH + k] = trial_mix(round * 1000003 + trial_rank * 1009 + to * 17 + k);
        memset(in, 0, (size_t)n * EACH * 8);
        MUST(MPI_Irecv(across, EACH, MPI_UINT64_T, previous, 1, MPI_COMM_WORLD, &requests[0]));
        MUST(MPI_Isend(out + next * EACH, EACH, MPI_UINT64_T, next, 1, MPI_COMM_WORLD, &requests[1]));
        requests[2] = MPI_REQUEST_NULL;
        if (round % 2) MUST(MPI_Alltoallv(out, counts, places, MPI_UINT64_T, in, counts, places, MPI_UINT64_T, MPI_COMM_WORLD));
        else MUST(MPI_Ialltoallv(out, counts, places, MPI_UINT64_T, in, counts, places, MPI_UINT64_T, MPI_COMM_WORLD, &requests[2]));
        MUST(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
        for (int from = 0; from < n; from++)
            for (int k = 0; k < counts[from]; k += 50)
                CHECK(in[from * EACH + k] == trial_mix(round * 1000003 + from * 1009 + trial_rank * 17 + k), "round %d: from rank %d element %d", (int)round, from, k);
        for (int k = 0; k < EACH; k += 50)
            CHECK(across[k] == trial_mix(round * 1000003 + previous * 1009 + trial_rank * 17 + k), "round %d: across, element %d", (int)round, k);
    }
    return trial_finish();
}
