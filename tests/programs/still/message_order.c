/* Hundreds of messages of one source and tag, empty and large ones among them, keep their order: the ones in flight
 * come before those sent afterwards.
 * trial: ranks=2,3 */
#include "../common.h"

#define COUNT 600

static int length_of(int i) { return i % 7 == 0 ? 0 : i % 50 == 0 ? 40000 : i % 97 + 1; }

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int last = trial_size - 1;
    int *buffer = malloc(40000 * sizeof(int));
    if (trial_rank == last) {
        trial_hold();
        for (int i = 0; i < COUNT; i++)
            for (int from = 0; from < last; from++) {
                MPI_Status status;
                int count = -1;
                if (i % 3 == 0) {
                    MUST(MPI_Probe(from, 9, MPI_COMM_WORLD, &status));
                    MUST(MPI_Get_count(&status, MPI_INT, &count));
                    CHECK(count == length_of(i), "message %d probed with %d elements", i, count);
                }
                MUST(MPI_Recv(buffer, 40000, MPI_INT, from, 9, MPI_COMM_WORLD, &status));
                MUST(MPI_Get_count(&status, MPI_INT, &count));
                CHECK(count == length_of(i), "message %d of rank %d has %d elements", i, from, count);
                for (int k = 0; k < count; k++)
                    if (buffer[k] != 1000 * i + k + from) {
                        CHECK(0, "message %d of rank %d: element %d is %d", i, from, k, buffer[k]);
                        break;
                    }
            }
    } else {
        MPI_Request *requests = malloc(COUNT * sizeof *requests);
        int **out = malloc(COUNT * sizeof *out);
        for (int i = 0; i < COUNT; i++) {
            if (i == COUNT / 2) trial_hold();
            out[i] = malloc((length_of(i) + 1) * sizeof(int));
            for (int k = 0; k < length_of(i); k++) out[i][k] = 1000 * i + k + trial_rank;
            MUST(MPI_Isend(out[i], length_of(i), MPI_INT, last, 9, MPI_COMM_WORLD, &requests[i]));
        }
        MUST(MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE));
    }
    return trial_finish();
}
