/* A token with a growing number goes round, small and large by turns.
 * trial: ranks=2,4 */
#include "../moving.h"

#define LARGE 30000

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int next = (trial_rank + 1) % trial_size, previous = (trial_rank + trial_size - 1) % trial_size;
    uint64_t *token = malloc(LARGE * sizeof *token);
    for (uint64_t lap = 0;; lap++) {
        int count = lap % 8 == 7 ? LARGE : 2;
        if (trial_rank == 0) {
            token[0] = lap, token[1] = moving_goes_on(lap);
            for (int i = 2; i < count; i++) token[i] = trial_mix(lap + i);
            MUST(MPI_Send(token, count, MPI_UINT64_T, next, (int)(lap % 1000), MPI_COMM_WORLD));
        }
        MPI_Status status;
        int got = 0;
        MUST(MPI_Recv(token, LARGE, MPI_UINT64_T, previous, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
        MUST(MPI_Get_count(&status, MPI_UINT64_T, &got));
        CHECK(got == count && status.MPI_TAG == (int)(lap % 1000), "lap %d: %d elements, tag %d", (int)lap, got, status.MPI_TAG);
        CHECK(token[0] == lap + (uint64_t)(trial_rank == 0 ? trial_size - 1 : trial_rank - 1), "lap %d: token %d", (int)lap, (int)token[0]);
        for (int i = 2; i < count; i += 97) CHECK(token[i] == trial_mix(lap + i), "lap %d: element %d", (int)lap, i);
        int goes_on = (int)token[1];
        if (trial_rank != 0) {
            token[0]++;
            MUST(MPI_Send(token, count, MPI_UINT64_T, next, (int)(lap % 1000), MPI_COMM_WORLD));
        }
        if (trial_failures || !goes_on) break;
    }
    return trial_finish();
}
