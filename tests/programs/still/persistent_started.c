/* Persistent sends and receives that are active through the checkpoint, then started again.
 * trial: ranks=2,4 */
#include "../common.h"

#define COUNT 200000

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int next = (trial_rank + 1) % trial_size, previous = (trial_rank + trial_size - 1) % trial_size;
    int *out = malloc(COUNT * sizeof(int)), *in = malloc(COUNT * sizeof(int)), token = trial_rank, got = -1;
    MPI_Request requests[4];
    MUST(MPI_Send_init(out, COUNT, MPI_INT, next, 1, MPI_COMM_WORLD, &requests[0]));
    MUST(MPI_Recv_init(in, COUNT, MPI_INT, previous, 1, MPI_COMM_WORLD, &requests[1]));
    MUST(MPI_Recv_init(&got, 1, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &requests[2]));
    MUST(MPI_Send_init(&token, 1, MPI_INT, next, 2, MPI_COMM_WORLD, &requests[3]));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i++) out[i] = i * 7 + trial_rank + 1000 * round, in[i] = -1;
        token = 100 * round + trial_rank, got = -1;
        if (trial_rank == 0 && round == 0) {
            /* Sends are begun while nobody receives; the receives come afterwards. */
            MUST(MPI_Start(&requests[0]));
            MUST(MPI_Start(&requests[3]));
            trial_hold();
            MUST(MPI_Startall(2, &requests[1]));
        } else if (round == 0) {
            /* Receives are active; the sends come afterwards. */
            MUST(MPI_Startall(2, &requests[1]));
            trial_hold();
            MUST(MPI_Start(&requests[0]));
            MUST(MPI_Start(&requests[3]));
        } else {
            MUST(MPI_Startall(4, requests));
        }
        MUST(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
        int wrong = 0;
        for (int i = 0; i < COUNT; i++) wrong += in[i] != i * 7 + previous + 1000 * round;
        CHECK(wrong == 0, "round %d: %d elements wrong", round, wrong);
        CHECK(got == 100 * round + previous, "round %d: token %d", round, got);
    }
    for (int i = 0; i < 4; i++) MUST(MPI_Request_free(&requests[i]));
    return trial_finish();
}
