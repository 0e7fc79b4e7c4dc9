/* Synchronous sends of every form: none is over before its receive has begun, however long its message has been in the receiver's image.
 * trial: ranks=2 */
#include "../common.h"

enum { COUNT = 3, SOME = 5, STARTED = 6, GO = 7, LARGE = 1 << 18 };

/* Whether a send is over, in every way to ask. */
static int is_over(MPI_Request *request) {
    int flag = 0, told = 0, index;
    MUST(MPI_Request_get_status(*request, &told, MPI_STATUS_IGNORE));
    MUST(MPI_Testany(1, request, &index, &flag, MPI_STATUS_IGNORE));
    CHECK(flag == told || flag, "told %d, over %d", told, flag);
    return flag;
}

static void sender(void) {
    static int large[LARGE];
    int values[COUNT] = {10, 11, 12}, flag = 0, count, places[COUNT];
    MPI_Request some[COUNT], started, of_large;
    for (int i = 0; i < COUNT; i++) MUST(MPI_Issend(&values[i], 1, MPI_INT, 1, SOME, MPI_COMM_WORLD, &some[i]));
    MUST(MPI_Ssend_init(&values[0], 1, MPI_INT, 1, STARTED, MPI_COMM_WORLD, &started));
    MUST(MPI_Start(&started));
    for (int i = 0; i < LARGE; i++) large[i] = i;
    MUST(MPI_Issend(large, LARGE, MPI_INT, 1, LARGE, MPI_COMM_WORLD, &of_large));
    trial_hold();
    for (int i = 0; i < 20; i++) {
        CHECK(!is_over(&some[0]), "%s", "the first send is over without a receive");
        CHECK(!is_over(&started), "%s", "the persistent send is over without a receive");
        MUST(MPI_Testall(COUNT, some, &flag, MPI_STATUSES_IGNORE));
        CHECK(!flag, "%s", "all sends are over without a receive");
        MUST(MPI_Testsome(COUNT, some, &count, places, MPI_STATUSES_IGNORE));
        CHECK(count == 0, "%d sends are over without a receive", count);
        MUST(MPI_Test(&of_large, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag, "%s", "the large send is over without a receive");
        usleep(1000);
    }
    for (int i = 0; i < COUNT; i++) {
        /* One is received, and the later ones are not. */
        MUST(MPI_Send(NULL, 0, MPI_INT, 1, GO, MPI_COMM_WORLD));
        MUST(MPI_Wait(&some[i], MPI_STATUS_IGNORE));
        for (int later = i + 1; later < COUNT; later++)
            CHECK(!is_over(&some[later]), "send %d is over after %d receives", later, i + 1);
    }
    MPI_Request both[2] = {started, of_large};
    MUST(MPI_Send(NULL, 0, MPI_INT, 1, GO, MPI_COMM_WORLD));
    MUST(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    /* Once more, with nothing drained. */
    values[0] = 20;
    MUST(MPI_Start(&started));
    MUST(MPI_Waitany(1, &started, &count, MPI_STATUS_IGNORE));
    MUST(MPI_Request_free(&started));
}

static void receiver(void) {
    static int large[LARGE];
    int value;
    trial_hold();
    for (int i = 0; i < COUNT; i++) {
        MUST(MPI_Recv(NULL, 0, MPI_INT, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        MUST(MPI_Recv(&value, 1, MPI_INT, 0, SOME, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(value == 10 + i, "value %d", value);
    }
    MUST(MPI_Recv(NULL, 0, MPI_INT, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    MUST(MPI_Recv(&value, 1, MPI_INT, 0, STARTED, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(value == 10, "started with %d", value);
    MUST(MPI_Recv(large, LARGE, MPI_INT, 0, LARGE, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < LARGE; i++) CHECK(large[i] == i, "large[%d] is %d", i, large[i]);
    MUST(MPI_Recv(&value, 1, MPI_INT, 0, STARTED, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(value == 20, "started again with %d", value);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    if (trial_rank == 0)
        sender();
    else
        receiver();
    return trial_finish();
}
