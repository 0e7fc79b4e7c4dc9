/* An operation in place whose datatype has gaps: what another thread writes into a gap while the operation waits stays there, over a restart too, and a
 * page that is not mapped may lie in a gap.
 * trial: ranks=2,3 safe_states=clock,barrier flags=-pthread */
#include "../common.h"
#include <pthread.h>
#include <sys/mman.h>

enum { PAGE = 4096, FAR = 2 * PAGE, EACH = 16 };

static char *room;

static long *near_part(int block) { return (long *)(room + EACH * block); }
static long *far_part(int block) { return (long *)(room + FAR + EACH * block); }
static long input(int rank, int part, int round) { return 100 * rank + 10 * part + round; }

/* Writes into the gaps once the operation waits for the last rank; calls no MPI. */
static void *write_meanwhile(void *argument) {
    usleep(50000);
    for (int block = 0; block < trial_size; block++) near_part(block)[1] = far_part(block)[1] = 7777 + block;
    trial_ready();
    return argument;
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int last = trial_rank == trial_size - 1;
    room = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(room != MAP_FAILED && munmap(room + PAGE, PAGE) == 0, "%s", strerror(errno));
    MPI_Datatype two, type;
    MUST(MPI_Type_create_hvector(2, 1, FAR, MPI_LONG, &two));
    MUST(MPI_Type_create_resized(two, 0, EACH, &type));
    MUST(MPI_Type_commit(&type));
    MUST(MPI_Type_free(&two));
    for (int round = 0; round < 3; round++) {
        for (int block = 0; block < trial_size; block++) {
            near_part(block)[0] = far_part(block)[0] = -1;
            near_part(block)[1] = far_part(block)[1] = -2;
        }
        near_part(trial_rank)[0] = input(trial_rank, 0, round);
        far_part(trial_rank)[0] = input(trial_rank, 1, round);
        pthread_t thread;
        if (round == 1 && last) trial_hold();
        if (round == 1 && !last) pthread_create(&thread, NULL, write_meanwhile, NULL);
        MUST(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, room, 1, type, MPI_COMM_WORLD));
        if (round == 1 && !last) pthread_join(thread, NULL);
        for (int block = 0; block < trial_size; block++) {
            long between = round == 1 && !last ? 7777 + block : -2;
            CHECK(near_part(block)[0] == input(block, 0, round), "round %d, %d: %ld", round, block, near_part(block)[0]);
            CHECK(far_part(block)[0] == input(block, 1, round), "round %d, %d: %ld", round, block, far_part(block)[0]);
            CHECK(near_part(block)[1] == between, "round %d, gap %d: %ld", round, block, near_part(block)[1]);
            CHECK(far_part(block)[1] == between, "round %d, far gap %d: %ld", round, block, far_part(block)[1]);
        }
    }
    MUST(MPI_Type_free(&type));
    return trial_finish();
}
