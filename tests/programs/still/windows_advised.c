/* Memory of windows that the program asks to leave out of core dumps (MADV_DONTDUMP), all of it and parts: an image has it as any other.
 * trial: ranks=2 */
#include "../common.h"
#include <sys/mman.h>

#define BYTES (1 << 20)
#define PAGE 4096

static MPI_Win windows[3];
static char *memory[3];

static void advise(char *at, size_t bytes) {
    char *from = (char *)(((uintptr_t)at + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
    size_t whole = bytes - (size_t)(from - at);
    CHECK(madvise(from, whole / PAGE * PAGE, MADV_DONTDUMP) == 0, "MADV_DONTDUMP: %s", strerror(errno));
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    MUST(MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory[0], &windows[0]));
    MUST(MPI_Win_allocate_shared(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory[1], &windows[1]));
    MUST(MPI_Win_allocate_shared(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory[2], &windows[2]));
    for (int i = 0; i < 3; i++) trial_fill(memory[i], BYTES, (uint64_t)(100 * i + trial_rank));
    advise(memory[0], BYTES);
    advise(memory[1], BYTES);
    advise(memory[2] + BYTES / 4, BYTES / 4);
    trial_hold();
    for (int i = 0; i < 3; i++) {
        long wrong = trial_differs(memory[i], BYTES, (uint64_t)(100 * i + trial_rank));
        CHECK(wrong < 0, "byte %ld of window %d", wrong, i);
        MUST(MPI_Win_free(&windows[i]));
    }
    return trial_finish();
}
