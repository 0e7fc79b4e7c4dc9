/* Blocking collectives on overlapping groups, with ranks that come at different times: the chain of the collective-clock
 * paper's figure 1b, where an operation that a rank meets after the request raises the targets of others.
 * trial: ranks=6 safe_states=clock,barrier */
#include "../moving.h"

#define GROUPS 4

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    static const int of[GROUPS][3] = {{0, 1, -1}, {1, 2, -1}, {2, 3, 4}, {4, 5, -1}};
    MPI_Comm comms[GROUPS];
    for (int g = 0; g < GROUPS; g++) {
        int member = 0;
        for (int i = 0; i < 3; i++) member |= of[g][i] == trial_rank;
        MUST(MPI_Comm_split(MPI_COMM_WORLD, member ? 1 : MPI_UNDEFINED, trial_rank, &comms[g]));
    }
    uint64_t done[GROUPS] = {0};
    for (uint64_t round = 0; moving_agree(round, MPI_COMM_WORLD); round++) {
        /* Every group has its own number of operations between two meetings of all; the order differs by rounds. */
        for (int step = 0; step < 12; step++) {
            uint64_t draw = trial_mix(round * 12 + step);
            int g = (int)(draw % GROUPS);
            if (comms[g] == MPI_COMM_NULL) continue;
            if (trial_mix(draw + trial_rank) % 3 == 0) usleep(trial_mix(draw * 7 + trial_rank) % 3000);
            uint64_t value = trial_mix(done[g] * 100 + g * 10 + trial_rank) >> 8, sum = 0, expected = 0;
            MUST(MPI_Allreduce(&value, &sum, 1, MPI_UINT64_T, MPI_SUM, comms[g]));
            for (int k = 0; k < 3; k++)
                if (of[g][k] >= 0) expected += trial_mix(done[g] * 100 + g * 10 + of[g][k]) >> 8;
            CHECK(sum == expected, "group %d operation %d", g, (int)done[g]);
            done[g]++;
        }
    }
    for (int g = 0; g < GROUPS; g++)
        if (comms[g] != MPI_COMM_NULL) MUST(MPI_Comm_free(&comms[g]));
    return trial_finish();
}
