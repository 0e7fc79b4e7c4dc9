/* Every wait and test form over requests of which some complete before, some during and some after.
 * trial: ranks=2 */
#include "../common.h"

#define MANY 12

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int peer = 1 - trial_rank;
    for (int form = 0; form < 8; form++) {
        int out[MANY], in[MANY], done = 0, seen[MANY] = {0};
        MPI_Request sends[MANY], receives[MANY + 1];
        for (int i = 0; i < MANY; i++) {
            out[i] = 1000 * form + 10 * i + trial_rank, in[i] = -1;
            MUST(MPI_Irecv(&in[i], 1, MPI_INT, peer, i, MPI_COMM_WORLD, &receives[i]));
        }
        receives[MANY] = MPI_REQUEST_NULL;
        MUST(MPI_Barrier(MPI_COMM_WORLD));
        for (int i = 0; i < MANY / 2; i++) MUST(MPI_Isend(&out[i], 1, MPI_INT, peer, i, MPI_COMM_WORLD, &sends[i]));
        if (form == 0) trial_hold();
        for (int i = MANY / 2; i < MANY; i++) MUST(MPI_Isend(&out[i], 1, MPI_INT, peer, i, MPI_COMM_WORLD, &sends[i]));
        while (done < MANY) {
            int index = -1, flag = 0, count = 0, indices[MANY + 1];
            MPI_Status status = {0}, statuses[MANY + 1];
            switch (form) {
            case 0:
            case 1:
                if (form == 0) MUST(MPI_Waitany(MANY + 1, receives, &index, &status));
                else {
                    do MUST(MPI_Testany(MANY + 1, receives, &index, &flag, &status));
                    while (!flag);
                }
                CHECK(index >= 0 && index < MANY, "index %d", index);
                CHECK(status.MPI_TAG == index, "tag %d of request %d", status.MPI_TAG, index);
                if (index >= 0 && index < MANY) seen[index]++;
                done++;
                break;
            case 2:
            case 3:
                if (form == 2) MUST(MPI_Waitsome(MANY + 1, receives, &count, indices, statuses));
                else {
                    do MUST(MPI_Testsome(MANY + 1, receives, &count, indices, statuses));
                    while (count == 0);
                }
                CHECK(count > 0 && count <= MANY, "%d complete", count);
                for (int i = 0; i < count && count <= MANY; i++) {
                    seen[indices[i]]++;
                    CHECK(statuses[i].MPI_TAG == indices[i], "tag %d of request %d", statuses[i].MPI_TAG, indices[i]);
                }
                done += count > 0 ? count : MANY;
                break;
            case 4:
            case 5:
                if (form == 4) MUST(MPI_Waitall(MANY + 1, receives, statuses));
                else {
                    do MUST(MPI_Testall(MANY + 1, receives, &flag, statuses));
                    while (!flag);
                }
                for (int i = 0; i < MANY; i++) {
                    seen[i]++;
                    CHECK(statuses[i].MPI_TAG == i, "tag %d", statuses[i].MPI_TAG);
                }
                CHECK(statuses[MANY].MPI_SOURCE == MPI_ANY_SOURCE, "the null request's status is not empty");
                done = MANY;
                break;
            default:
                for (int i = 0; i < MANY; i++) {
                    if (form == 6) MUST(MPI_Wait(&receives[i], &status));
                    else {
                        do MUST(MPI_Test(&receives[i], &flag, &status));
                        while (!flag);
                    }
                    seen[i]++;
                    CHECK(status.MPI_TAG == i && status.MPI_SOURCE == peer, "status of %d", i);
                }
                done = MANY;
            }
        }
        for (int i = 0; i < MANY; i++) {
            CHECK(seen[i] == 1, "form %d: request %d completed %d times", form, i, seen[i]);
            CHECK(in[i] == 1000 * form + 10 * i + peer, "form %d: message %d holds %d", form, i, in[i]);
            CHECK(receives[i] == MPI_REQUEST_NULL, "form %d: request %d is not null", form, i);
        }
        int index = 0, flag = 0;
        MUST(MPI_Waitany(MANY, receives, &index, MPI_STATUS_IGNORE));
        CHECK(index == MPI_UNDEFINED, "nothing to wait for: index %d", index);
        MUST(MPI_Testany(MANY, receives, &index, &flag, MPI_STATUS_IGNORE));
        CHECK(index == MPI_UNDEFINED && flag, "nothing to test: index %d", index);
        MUST(MPI_Waitall(MANY, sends, MPI_STATUSES_IGNORE));
    }
    return trial_finish();
}
