/* Nonblocking collectives on overlapping groups {0,1}, {1,2}, {2,3,4}, {4,5} - the chain of the collective-clock paper's
 * figure 1 - begun by different members in different numbers.
 * trial: ranks=6 */
#include "../common.h"

#define GROUPS 4
#define EACH 5

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    static const int of[GROUPS][3] = {{0, 1, -1}, {1, 2, -1}, {2, 3, 4}, {4, 5, -1}};
    MPI_Comm comms[GROUPS];
    MPI_Request requests[GROUPS][EACH];
    int sums[GROUPS][EACH], values[GROUPS][EACH];
    for (int g = 0; g < GROUPS; g++) {
        int member = 0;
        for (int i = 0; i < 3; i++) member |= of[g][i] == trial_rank;
        MUST(MPI_Comm_split(MPI_COMM_WORLD, member ? 1 : MPI_UNDEFINED, trial_rank, &comms[g]));
    }
    for (int stage = 0; stage < 2; stage++) {
        for (int g = 0; g < GROUPS; g++) {
            if (comms[g] == MPI_COMM_NULL) continue;
            /* The first member is ahead of the last one. */
            int rank = -1;
            MUST(MPI_Comm_rank(comms[g], &rank));
            int ahead = EACH - 1 - rank, from = stage ? ahead : 0, to = stage ? EACH : ahead;
            for (int i = from; i < to; i++) {
                values[g][i] = 100 * g + 10 * i + trial_rank;
                MUST(MPI_Iallreduce(&values[g][i], &sums[g][i], 1, MPI_INT, MPI_SUM, comms[g], &requests[g][i]));
            }
        }
        if (stage == 0) trial_hold();
    }
    for (int g = GROUPS - 1; g >= 0; g--) {
        if (comms[g] == MPI_COMM_NULL) continue;
        MUST(MPI_Waitall(EACH, requests[g], MPI_STATUSES_IGNORE));
        for (int i = 0; i < EACH; i++) {
            int expected = 0;
            for (int k = 0; k < 3; k++)
                if (of[g][k] >= 0) expected += 100 * g + 10 * i + of[g][k];
            CHECK(sums[g][i] == expected, "group %d number %d: %d", g, i, sums[g][i]);
        }
        MUST(MPI_Comm_free(&comms[g]));
    }
    return trial_finish();
}
