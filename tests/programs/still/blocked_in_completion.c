/* Ranks are blocked in Recv, Wait, Probe, Waitany, Waitall, Waitsome and Mprobe when the checkpoint comes.
 * trial: ranks=4,8 */
#include "../common.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int value = -1, other = -1;
    MPI_Request requests[2];
    MPI_Status status, statuses[2];
    MPI_Message message;
    int index = -1, count = 0, indices[2];
    if (trial_rank == 0) {
        trial_hold();
        for (int to = 1; to < trial_size; to++) {
            value = 10 * to;
            MUST(MPI_Send(&value, 1, MPI_INT, to, 1, MPI_COMM_WORLD));
            value++;
            MUST(MPI_Send(&value, 1, MPI_INT, to, 2, MPI_COMM_WORLD));
        }
        return trial_finish();
    }
    int form = trial_rank;
    if (form == 2 || form > 3) MUST(MPI_Irecv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &requests[0]));
    if (form > 3 && form != 7) MUST(MPI_Irecv(&other, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, &requests[1]));
    trial_ready();
    switch (form) {
    case 1:
        MUST(MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        MUST(MPI_Recv(&other, 1, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &status));
        break;
    case 2:
        MUST(MPI_Wait(&requests[0], &status));
        CHECK(status.MPI_SOURCE == 0 && status.MPI_TAG == 1, "status");
        MUST(MPI_Recv(&other, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        break;
    case 3:
        MUST(MPI_Probe(MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &status));
        CHECK(status.MPI_SOURCE == 0 && status.MPI_TAG == 2, "status");
        MUST(MPI_Recv(&other, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        MUST(MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        break;
    case 4:
        MUST(MPI_Waitany(2, requests, &index, &status));
        CHECK(index == status.MPI_TAG - 1, "index %d with tag %d", index, status.MPI_TAG);
        MUST(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        break;
    case 5:
        MUST(MPI_Waitall(2, requests, statuses));
        CHECK(statuses[0].MPI_TAG == 1 && statuses[1].MPI_TAG == 2, "statuses");
        break;
    case 6:
        for (int done = 0; done < 2; done += count) MUST(MPI_Waitsome(2, requests, &count, indices, statuses));
        break;
    default:
        MUST(MPI_Mprobe(0, 2, MPI_COMM_WORLD, &message, &status));
        MUST(MPI_Mrecv(&other, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
        MUST(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    }
    CHECK(value == 10 * trial_rank && other == 10 * trial_rank + 1, "got %d and %d", value, other);
    return trial_finish();
}
