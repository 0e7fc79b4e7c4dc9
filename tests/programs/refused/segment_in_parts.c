/* A System V segment of which a part has a protection of its own, or is no longer attached: the checkpoint refuses, and the program has it as before.
 * trial: ranks=2 refuses=unmovable-memory */
#include "../common.h"
#include <sys/mman.h>
#include <sys/shm.h>

#define PAGE 4096

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int id = shmget(IPC_PRIVATE, 4 * PAGE, IPC_CREAT | 0600);
    char *at = shmat(id, NULL, 0);
    CHECK(id >= 0 && at != (void *)-1, "no segment: %s", strerror(errno));
    shmctl(id, IPC_RMID, NULL);
    trial_fill(at, 4 * PAGE, trial_rank);
    if (trial_rank == 0) CHECK(mprotect(at + PAGE, PAGE, PROT_READ) == 0, "mprotect: %s", strerror(errno));
    else CHECK(munmap(at + 3 * PAGE, PAGE) == 0, "munmap: %s", strerror(errno));
    trial_hold();
    CHECK(trial_differs(at, 3 * PAGE, trial_rank) < 0, "contents differ");
    CHECK(shmdt(at) == 0, "shmdt: %s", strerror(errno));
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
