/* Two hundred communicators, half of them freed again, each with a message in flight; more are made afterwards.
 * trial: ranks=2 */
#include "../common.h"

#define COUNT 200

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    MPI_Comm comms[COUNT], fresh[20];
    int peer = 1 - trial_rank, got = -1;
    for (int i = 0; i < COUNT; i++)
        if (i % 3) MUST(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
        else MUST(MPI_Comm_split(MPI_COMM_WORLD, 0, i % 2 ? trial_rank : -trial_rank, &comms[i]));
    for (int i = 0; i < COUNT; i += 2) MUST(MPI_Comm_free(&comms[i]));
    for (int i = 1; i < COUNT; i += 2) {
        int value = 1000 * trial_rank + i;
        MUST(MPI_Send(&value, 1, MPI_INT, peer, 1, comms[i]));
    }
    trial_hold();
    for (int i = 0; i < 20; i++) MUST(MPI_Comm_dup(MPI_COMM_WORLD, &fresh[i]));
    for (int i = 0; i < 20; i++) {
        int flag = 1;
        MUST(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, fresh[i], &flag, MPI_STATUS_IGNORE));
        CHECK(!flag, "a message on a new communicator");
    }
    for (int i = COUNT - 1; i > 0; i -= 2) {
        MUST(MPI_Recv(&got, 1, MPI_INT, peer, 1, comms[i], MPI_STATUS_IGNORE));
        CHECK(got == 1000 * peer + i, "communicator %d gave %d", i, got);
        MUST(MPI_Comm_free(&comms[i]));
    }
    for (int i = 0; i < 20; i++) MUST(MPI_Comm_free(&fresh[i]));
    return trial_finish();
}
