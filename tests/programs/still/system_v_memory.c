/* A System V segment of the process's own stays attached where it was, with its contents.
 * trial: ranks=2 */
#include "../common.h"
#include <sys/ipc.h>
#include <sys/shm.h>

#define BYTES (128 << 10)

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int id = shmget(IPC_PRIVATE, BYTES, IPC_CREAT | 0600);
    char *at = shmat(id, NULL, 0);
    CHECK(id >= 0 && at != (void *)-1, "no segment: %s", strerror(errno));
    shmctl(id, IPC_RMID, NULL);
    trial_fill(at, BYTES, trial_rank);
    trial_hold();
    CHECK(trial_differs(at, BYTES, trial_rank) < 0, "contents differ");
    at[0] = 1;
    shmdt(at);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
