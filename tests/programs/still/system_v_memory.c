/* System V segments of the process's own stay attached where they were, with their contents: one that is marked for removal,
 * attached twice, and one that has its id, twice too. Each can be detached, once.
 * trial: ranks=2 */
#include "../common.h"
#include <sys/ipc.h>
#include <sys/shm.h>

#define BYTES (128 << 10)

static void detached(char *at, const char *what) {
    CHECK(shmdt(at) == 0, "%s cannot be detached: %s", what, strerror(errno));
    CHECK(shmdt(at) == -1 && errno == EINVAL, "%s is detached twice", what);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int id = shmget(IPC_PRIVATE, BYTES, IPC_CREAT | 0600), named = shmget(IPC_PRIVATE, BYTES, IPC_CREAT | 0600);
    char *at = shmat(id, NULL, 0), *again = shmat(id, NULL, 0), *other = shmat(named, NULL, 0);
    CHECK(id >= 0 && at != (void *)-1 && again != (void *)-1, "no segment: %s", strerror(errno));
    char *more = shmat(named, NULL, 0);
    CHECK(named >= 0 && other != (void *)-1 && more != (void *)-1, "no segment: %s", strerror(errno));
    shmctl(id, IPC_RMID, NULL);
    trial_fill(at, BYTES, trial_rank);
    trial_fill(other, BYTES, trial_rank + 7);
    trial_hold();
    CHECK(trial_differs(at, BYTES, trial_rank) < 0, "contents differ");
    CHECK(trial_differs(other, BYTES, trial_rank + 7) < 0, "the other one's contents differ");
    at[0] = 1, again[BYTES - 1] = 2;
    CHECK(again[0] == 1 && at[BYTES - 1] == 2, "the two attachments are not the same memory");
    other[0] = 3, more[BYTES - 1] = 4;
    CHECK(more[0] == 3 && other[BYTES - 1] == 4, "the other one's attachments are not the same memory");
    struct shmid_ds status;
    CHECK(shmctl(named, IPC_STAT, &status) == 0 && status.shm_nattch == 2, "%ld attachments", (long)status.shm_nattch);
    CHECK(shmctl(named, IPC_RMID, NULL) == 0, "the id leads nowhere: %s", strerror(errno));
    detached(at, "the first attachment");
    CHECK(again[0] == 1, "the second attachment went with the first");
    detached(again, "the second attachment");
    detached(other, "the other segment");
    detached(more, "the other segment, attached again");
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
