/* Hundreds of small messages from everybody to everybody are in flight, on two communicators.
 * trial: ranks=2,4 */
#include "../common.h"

#define COUNT 1000

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    MPI_Comm comms[2] = {MPI_COMM_WORLD, MPI_COMM_NULL};
    MUST(MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]));
    /* Ready before the sends: some of them may block until the other side calls MPI again, after `go`. */
    trial_ready();
    for (int i = 0; i < COUNT; i++)
        for (int to = 0; to < trial_size; to++) {
            uint64_t value = trial_mix(i * 64 + trial_rank * 8 + to);
            MUST(MPI_Send(&value, 1, MPI_UINT64_T, to, i % 5, comms[i % 2]));
        }
    trial_wait();
    int next[8][10] = {{0}};
    for (int left = COUNT * trial_size, which = 0; left > 0; left--, which++) {
        uint64_t value;
        MPI_Status status;
        MPI_Comm comm = comms[which % 2];
        MUST(MPI_Recv(&value, 1, MPI_UINT64_T, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status));
        int *count = &next[status.MPI_SOURCE][status.MPI_TAG * 2 + which % 2];
        /* Message number i has tag i mod 5 and goes to communicator i mod 2: i mod 10 is known. */
        int i = -1;
        for (int k = 0; k < 10; k++)
            if (k % 5 == status.MPI_TAG && k % 2 == which % 2) i = k + 10 * *count;
        ++*count;
        CHECK(value == trial_mix((uint64_t)i * 64 + status.MPI_SOURCE * 8 + trial_rank), "message %d of rank %d", i,
              status.MPI_SOURCE);
    }
    MUST(MPI_Comm_free(&comms[1]));
    return trial_finish();
}
