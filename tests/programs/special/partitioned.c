/* Partitioned communication in a ring: partitions made ready one by one, in a range and by a list, asked for before all have come, several requests with one tag at a
 * time, other counts of partitions on both sides, and ordinary messages with the same tag beside them. For an MPI that has it. With an argument requests are there
 * all the time, without one they are freed after each round, and there is a while without any.
 * trial: ranks=2,3 refuses=partitioned-request */
#include "../common.h"

enum { PARTITIONS = 6, EACH = 5, ALL = PARTITIONS * EACH, PAIRS = 2, TAG = 4 };

static int out[PAIRS][ALL], in[PAIRS][ALL];
static int next, previous;

static int expected(int from, int pair, int round, int at) {
    return from * 1000003 + pair * 7919 + round * 31 + at;
}

static void make(MPI_Request *sends, MPI_Request *receives) {
    for (int pair = 0; pair < PAIRS; pair++) {
        MUST(MPI_Psend_init(out[pair], PARTITIONS, EACH, MPI_INT, next, TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &sends[pair]));
        MUST(MPI_Precv_init(in[pair], pair ? PARTITIONS : 1, pair ? EACH : ALL, MPI_INT, previous, TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &receives[pair]));
    }
}

static void end(MPI_Request *sends, MPI_Request *receives) {
    for (int pair = 0; pair < PAIRS; pair++) {
        MUST(MPI_Request_free(&sends[pair]));
        MUST(MPI_Request_free(&receives[pair]));
        CHECK(sends[pair] == MPI_REQUEST_NULL && receives[pair] == MPI_REQUEST_NULL, "%s", "a handle stays");
    }
}

static void go_round(MPI_Request *sends, MPI_Request *receives, int round) {
    int beside = -1, flag = 0;
    MPI_Request both[2 * PAIRS], plain;
    MPI_Status status;
    for (int pair = 0; pair < PAIRS; pair++)
        for (int at = 0; at < ALL; at++) out[pair][at] = expected(trial_rank, pair, round, at), in[pair][at] = -1;
    MUST(MPI_Start(&receives[0]));
    MUST(MPI_Start(&receives[1]));
    MUST(MPI_Startall(PAIRS, sends));
    MUST(MPI_Irecv(&beside, 1, MPI_INT, previous, TAG, MPI_COMM_WORLD, &plain));
    MUST(MPI_Send(&round, 1, MPI_INT, next, TAG, MPI_COMM_WORLD));
    MUST(MPI_Test(&sends[0], &flag, &status));
    CHECK(!flag, "%s", "a send is over before its partitions are ready");
    /* The second first: what matches does so by the order in which it was made. */
    int some[3] = {4, 0, 2};
    MUST(MPI_Pready_list(3, some, sends[1]));
    MUST(MPI_Pready(5, sends[1]));
    MUST(MPI_Pready(1, sends[1]));
    MUST(MPI_Pready(3, sends[1]));
    MUST(MPI_Pready_range(0, PARTITIONS - 2, sends[0]));
    MUST(MPI_Pready(PARTITIONS - 1, sends[0]));
    for (flag = 0; !flag;) MUST(MPI_Parrived(receives[1], 3, &flag));
    for (int at = 3 * EACH; at < 4 * EACH; at++)
        CHECK(in[1][at] == expected(previous, 1, round, at), "partition 3 at %d: %d", at, in[1][at]);
    for (int pair = 0; pair < PAIRS; pair++) both[pair] = sends[pair], both[PAIRS + pair] = receives[pair];
    if (round % 3 == 0) {
        MUST(MPI_Waitall(2 * PAIRS, both, MPI_STATUSES_IGNORE));
    } else {
        for (int i = 0; i < 2 * PAIRS; i++) {
            for (flag = 0; !flag && round % 3 == 1;) MUST(MPI_Test(&both[i], &flag, &status));
            MUST(MPI_Wait(&both[i], MPI_STATUS_IGNORE));
        }
    }
    for (int pair = 0; pair < PAIRS; pair++)
        CHECK(both[pair] == sends[pair] && both[PAIRS + pair] == receives[pair], "%s", "a handle has changed");
    MUST(MPI_Wait(&plain, &status));
    CHECK(beside == round, "beside it came %d in round %d", beside, round);
    for (int pair = 0; pair < PAIRS; pair++)
        for (int at = 0; at < ALL; at++)
            CHECK(in[pair][at] == expected(previous, pair, round, at), "pair %d at %d: %d", pair, at, in[pair][at]);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    next = (trial_rank + 1) % trial_size, previous = (trial_rank + trial_size - 1) % trial_size;
    int always = argc > 1, rounds = 0, goes_on = 1;
    MPI_Request sends[PAIRS], receives[PAIRS];
    make(sends, receives);
    if (always) trial_ready();
    while (goes_on) {
        go_round(sends, receives, rounds++);
        if (!always) {
            end(sends, receives);
            MUST(MPI_Barrier(MPI_COMM_WORLD));
            usleep(rounds % 8 ? 1000 : 30000);
            make(sends, receives);
            if (rounds == 2) trial_ready();
        }
        int mine = rounds < 20 || !trial_go();
        MUST(MPI_Allreduce(&mine, &goes_on, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    }
    end(sends, receives);
    return trial_end();
}
