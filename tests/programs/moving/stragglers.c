/* Ranks compute for different times without calling MPI and meet in blocking collectives; some wait there for long.
 * trial: ranks=2,4 safe_states=clock,barrier */
#include "../moving.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    uint64_t state = 1;
    for (uint64_t round = 0; moving_agree(round, MPI_COMM_WORLD); round++) {
        if (round > LEAST_ROUNDS) trial_compute((double)(trial_mix(round * 8 + trial_rank) % 60) / 1000.0);
        uint64_t value = trial_mix(state + trial_rank), all = 0, expected = 0;
        MUST(MPI_Allreduce(&value, &all, 1, MPI_UINT64_T, MPI_BXOR, MPI_COMM_WORLD));
        for (int i = 0; i < trial_size; i++) expected ^= trial_mix(state + i);
        CHECK(all == expected, "round %d", (int)round);
        MUST(MPI_Barrier(MPI_COMM_WORLD));
        state = all;
    }
    return trial_finish();
}
