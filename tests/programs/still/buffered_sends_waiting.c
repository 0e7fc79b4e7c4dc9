/* An attached buffer holds large messages that nobody has received; detaching waits for them.
 * trial: ranks=2 */
#include "../common.h"

#define BYTES (512 << 10)

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    if (trial_rank == 0) {
        int room = 3 * (BYTES + MPI_BSEND_OVERHEAD), bytes = 0;
        char *buffer = malloc(room), *message = malloc(BYTES), *detached = NULL;
        MUST(MPI_Buffer_attach(buffer, room));
        for (int i = 0; i < 3; i++) {
            trial_fill(message, BYTES, i);
            MUST(MPI_Bsend(message, BYTES, MPI_BYTE, 1, i, MPI_COMM_WORLD));
        }
        memset(message, 0, BYTES);
        trial_hold();
        MUST(MPI_Buffer_detach(&detached, &bytes));
        CHECK(detached == buffer && bytes == room, "detached something else");
        memset(buffer, 0, room);
    } else {
        char *message = malloc(BYTES);
        trial_hold();
        for (int i = 2; i >= 0; i--) {
            MUST(MPI_Recv(message, BYTES, MPI_BYTE, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK(trial_differs(message, BYTES, i) < 0, "message %d wrong from byte %ld on", i,
                  trial_differs(message, BYTES, i));
        }
    }
    return trial_finish();
}
