/* Generalized requests that are freed before they are complete: the function that frees runs when both have been, once.
 * trial: ranks=2 */
#include "../common.h"

static int freed[2];

static int query(void *state, MPI_Status *status) {
    (void)state;
    MPI_Status_set_elements(status, MPI_BYTE, 0);
    MPI_Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}

static int release(void *state) {
    ++*(int *)state;
    return MPI_SUCCESS;
}

static int cancel(void *state, int complete) {
    (void)state, (void)complete;
    return MPI_SUCCESS;
}

/* Starts one and frees it. What is left of it is the copy that completes it. */
static MPI_Request start(int *state) {
    MPI_Request request, copy;
    MUST(MPI_Grequest_start(query, release, cancel, state, &request));
    copy = request;
    MUST(MPI_Request_free(&request));
    CHECK(request == MPI_REQUEST_NULL, "%s", "a freed request is not null");
    CHECK(*state == 0, "%s", "freed before it is complete");
    return copy;
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    MPI_Request before = start(&freed[0]);
    MUST(MPI_Grequest_complete(before));
    CHECK(freed[0] == 1, "freed %d times", freed[0]);
    MPI_Request held = start(&freed[1]);
    trial_hold();
    CHECK(freed[1] == 0, "freed %d times while it was held", freed[1]);
    MUST(MPI_Grequest_complete(held));
    CHECK(freed[1] == 1, "freed %d times", freed[1]);
    return trial_finish();
}
