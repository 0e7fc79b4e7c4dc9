/* Messages in flight are found by every form of probe, with the right source, tag and size.
 * trial: ranks=2,3 */
#include "../common.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    if (trial_rank != 0) {
        for (int tag = 0; tag < 6; tag++) {
            int values[6];
            for (int i = 0; i <= tag; i++) values[i] = 100 * trial_rank + 10 * tag + i;
            MUST(MPI_Send(values, tag + 1, MPI_INT, 0, tag, MPI_COMM_WORLD));
        }
        trial_hold();
    } else {
        trial_hold();
        for (int source = 1; source < trial_size; source++) {
            int values[6], count = 0, flag = 0;
            MPI_Status status;
            MPI_Message message;
            MPI_Request request;
            for (int tag = 5; tag >= 0; tag--) {
                memset(values, 0, sizeof values);
                switch (tag) {
                case 5:
                    MUST(MPI_Probe(source, tag, MPI_COMM_WORLD, &status));
                    MUST(MPI_Get_count(&status, MPI_INT, &count));
                    MUST(MPI_Recv(values, count, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, &status));
                    break;
                case 4:
                    do MUST(MPI_Iprobe(source, tag, MPI_COMM_WORLD, &flag, &status));
                    while (!flag);
                    MUST(MPI_Get_count(&status, MPI_INT, &count));
                    MUST(MPI_Recv(values, 6, MPI_INT, source, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
                    break;
                case 3:
                    MUST(MPI_Mprobe(source, tag, MPI_COMM_WORLD, &message, &status));
                    MUST(MPI_Get_count(&status, MPI_INT, &count));
                    MUST(MPI_Mrecv(values, count, MPI_INT, &message, &status));
                    CHECK(message == MPI_MESSAGE_NULL, "a received message is not null");
                    break;
                case 2:
                    status.MPI_TAG = 0;
                    do MUST(MPI_Improbe(source, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, source % 4 == 2 ? MPI_STATUS_IGNORE : &status));
                    while (!flag);
                    /* Any tag: the oldest of this source, which is tag 0. */
                    CHECK(status.MPI_TAG == 0, "tag %d came first", status.MPI_TAG);
                    MUST(MPI_Imrecv(values, 6, MPI_INT, &message, &request));
                    MUST(MPI_Wait(&request, &status));
                    CHECK(values[0] == 100 * source && status.MPI_TAG == 0, "first message holds %d", values[0]);
                    MUST(MPI_Recv(values, 6, MPI_INT, source, tag, MPI_COMM_WORLD, &status));
                    MUST(MPI_Get_count(&status, MPI_INT, &count));
                    break;
                case 1:
                    MUST(MPI_Probe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &status));
                    MUST(MPI_Recv(values, 6, MPI_INT, source, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
                    MUST(MPI_Get_count(&status, MPI_INT, &count));
                    break;
                default:
                    MUST(MPI_Iprobe(source, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
                    CHECK(!flag, "one message too many");
                    continue;
                }
                CHECK(count == tag + 1, "tag %d: %d elements", tag, count);
                CHECK(status.MPI_SOURCE == source && status.MPI_TAG == tag, "tag %d: status says tag %d of rank %d", tag,
                      status.MPI_TAG, status.MPI_SOURCE);
                for (int i = 0; i <= tag; i++)
                    CHECK(values[i] == 100 * source + 10 * tag + i, "tag %d element %d is %d", tag, i, values[i]);
            }
        }
        MPI_Message nobody;
        MPI_Status status;
        MUST(MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &nobody, &status));
        CHECK(nobody == MPI_MESSAGE_NO_PROC && status.MPI_SOURCE == MPI_PROC_NULL, "probing nobody");
        MUST(MPI_Mrecv(NULL, 0, MPI_INT, &nobody, &status));
    }
    return trial_finish();
}
