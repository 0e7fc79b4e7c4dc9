/* A generalized request is pending through the checkpoint and completed afterwards; its functions run.
 * trial: ranks=2 */
#include "../common.h"

static int queried, freed, cancelled;

static int query(void *state, MPI_Status *status) {
    queried++;
    MPI_Status_set_elements(status, MPI_INT, *(int *)state);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = 12;
    status->MPI_TAG = 34;
    return MPI_SUCCESS;
}

static int release(void *state) {
    (void)state;
    freed++;
    return MPI_SUCCESS;
}

static int cancel(void *state, int complete) {
    (void)state, (void)complete;
    cancelled++;
    return MPI_SUCCESS;
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int state = 21, flag = 1, count = 0;
    MPI_Request pending, complete;
    MPI_Status status;
    MUST(MPI_Grequest_start(query, release, cancel, &state, &pending));
    MUST(MPI_Grequest_start(query, release, cancel, &state, &complete));
    MUST(MPI_Grequest_complete(complete));
    MUST(MPI_Test(&pending, &flag, &status));
    CHECK(!flag, "complete too early");
    trial_hold();
    MUST(MPI_Test(&pending, &flag, &status));
    CHECK(!flag, "complete by the checkpoint");
    MUST(MPI_Cancel(&pending));
    CHECK(cancelled == 1, "cancel function ran %d times", cancelled);
    MUST(MPI_Grequest_complete(pending));
    MUST(MPI_Wait(&pending, &status));
    MUST(MPI_Get_elements(&status, MPI_INT, &count));
    CHECK(count == 21 && status.MPI_SOURCE == 12 && status.MPI_TAG == 34, "status: %d elements", count);
    MUST(MPI_Wait(&complete, &status));
    CHECK(queried >= 2 && freed == 2, "queried %d, freed %d", queried, freed);
    return trial_finish();
}
