/* A master hands tasks out and takes results from whoever is first; workers take different times.
 * trial: ranks=2,4 */
#include "../moving.h"

enum { TASK = 1, RESULT, END };

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    uint64_t message[2];
    MPI_Status status;
    if (trial_rank == 0) {
        uint64_t given = 0, got = 0, sum = 0, expected = 0, *of = calloc(trial_size, sizeof *of);
        for (int to = 1; to < trial_size; to++) {
            of[to] = given++;
            MUST(MPI_Send(&of[to], 1, MPI_UINT64_T, to, TASK, MPI_COMM_WORLD));
        }
        for (int ending = 0; got < given;) {
            MUST(MPI_Recv(message, 2, MPI_UINT64_T, MPI_ANY_SOURCE, RESULT, MPI_COMM_WORLD, &status));
            CHECK(message[0] == of[status.MPI_SOURCE], "rank %d answers task %d, has task %d", status.MPI_SOURCE, (int)message[0], (int)of[status.MPI_SOURCE]);
            sum += message[1];
            got++;
            ending = ending || trial_failures || !moving_goes_on(got);
            if (!ending) {
                of[status.MPI_SOURCE] = given++;
                MUST(MPI_Send(&of[status.MPI_SOURCE], 1, MPI_UINT64_T, status.MPI_SOURCE, TASK, MPI_COMM_WORLD));
            }
        }
        for (int to = 1; to < trial_size; to++) MUST(MPI_Send(NULL, 0, MPI_UINT64_T, to, END, MPI_COMM_WORLD));
        for (uint64_t i = 0; i < given; i++) expected += trial_mix(i);
        CHECK(sum == expected, "the sum over %d tasks is wrong", (int)given);
    } else {
        trial_ready();
        for (;;) {
            MUST(MPI_Probe(0, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
            MUST(MPI_Recv(message, 1, MPI_UINT64_T, 0, status.MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            if (status.MPI_TAG == END) break;
            message[1] = trial_mix(message[0]);
            if (message[1] % 16 == 0) usleep(message[1] % 2000);
            MUST(MPI_Send(message, 2, MPI_UINT64_T, 0, RESULT, MPI_COMM_WORLD));
        }
    }
    return trial_finish();
}
