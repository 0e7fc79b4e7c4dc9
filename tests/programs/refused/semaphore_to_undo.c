/* A semaphore that the kernel would give back at the process's end: the checkpoint refuses while it is held.
 * trial: ranks=2 refuses=semaphore-undo */
#include "../common.h"
#include <sys/sem.h>

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int set = semget(IPC_PRIVATE, 2, 0600);
    CHECK(set >= 0, "semget: %s", strerror(errno));
    CHECK(semctl(set, 1, SETVAL, 1) == 0, "semctl: %s", strerror(errno));
    struct sembuf take = {1, -1, SEM_UNDO}, give = {1, 1, SEM_UNDO}, again = {1, -1, SEM_UNDO | IPC_NOWAIT};
    struct timespec soon = {0, 1000000};
    CHECK(semop(set, &take, 1) == 0, "semop: %s", strerror(errno));
    CHECK(semop(set, &again, 1) < 0 && errno == EAGAIN, "taken twice: %s", strerror(errno));
    CHECK(semtimedop(set, &take, 1, &soon) < 0 && errno == EAGAIN, "taken twice: %s", strerror(errno));
    CHECK(semop(set, NULL, 1) < 0 && errno == EFAULT, "no operations: %s", strerror(errno));
    trial_hold();
    CHECK(semctl(set, 1, GETVAL) == 0, "%s", "it has been given back");
    CHECK(semop(set, &give, 1) == 0, "semop: %s", strerror(errno));
    CHECK(semctl(set, 1, GETVAL) == 1, "%s", "it has not been given back");
    semctl(set, 0, IPC_RMID);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
