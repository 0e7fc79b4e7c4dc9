/* A communicator that is freed while messages that were matched on it wait for their receives: it lives as long as they do.
 * trial: ranks=2 */
#include "../common.h"

enum { ROUNDS = 4 };

/* A message to ourselves is matched, and its communicator is given up. */
static MPI_Message match(int value, MPI_Request *request, int *place) {
    MPI_Comm own;
    MPI_Message message;
    *place = value;
    MUST(MPI_Comm_dup(MPI_COMM_SELF, &own));
    MUST(MPI_Isend(place, 1, MPI_INT, 0, 3, own, request));
    MUST(MPI_Mprobe(0, 3, own, &message, MPI_STATUS_IGNORE));
    MUST(MPI_Comm_free(&own));
    return message;
}

/* It is received, and nothing that is alive was given back with it. */
static void receive(MPI_Message message, int value, MPI_Request *request, int nonblocking) {
    int got = 0;
    if (nonblocking) {
        MPI_Request received;
        MUST(MPI_Imrecv(&got, 1, MPI_INT, &message, &received));
        MUST(MPI_Wait(&received, MPI_STATUS_IGNORE));
    } else {
        MUST(MPI_Mrecv(&got, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
    }
    CHECK(got == value, "received %d", got);
    MUST(MPI_Wait(request, MPI_STATUS_IGNORE));
    MPI_Comm one, two;
    MUST(MPI_Comm_dup(MPI_COMM_SELF, &one));
    MUST(MPI_Comm_dup(MPI_COMM_SELF, &two));
    CHECK(one != two, "%s", "two communicators share a handle");
    MUST(MPI_Comm_free(&one));
    MUST(MPI_Comm_free(&two));
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    MPI_Request request, held;
    int sent, kept;
    for (int round = 0; round < ROUNDS; round++) receive(match(round, &request, &sent), round, &request, round % 2);
    MPI_Message message = match(77, &held, &kept);
    trial_hold();
    receive(message, 77, &held, trial_rank);
    for (int round = 0; round < ROUNDS; round++) receive(match(round, &request, &sent), round, &request, round % 2);
    return trial_finish();
}
