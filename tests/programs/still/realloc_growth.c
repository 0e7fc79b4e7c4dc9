/* A block grown with realloc from 1 MB to 64 MB (mremap moves it), half of the way before and half after.
 * trial: ranks=2 */
#include "../common.h"

#define MB (1u << 20)

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    char *block = NULL;
    size_t filled = 0;
    for (size_t size = MB; size <= 64 * MB; size *= 2) {
        if (size == 16 * MB) trial_hold();
        block = realloc(block, size);
        for (; filled < size; filled += MB) trial_fill(block + filled, MB, 1000 * trial_rank + filled / MB);
        /* Something behind it, so that it has to move. */
        char *obstacle = malloc(MB);
        memset(obstacle, 1, MB);
    }
    for (size_t at = 0; at < filled; at += MB)
        CHECK(trial_differs(block + at, MB, 1000 * trial_rank + at / MB) < 0, "megabyte %zu differs", at / MB);
    block = realloc(block, 3 * MB);
    for (size_t at = 0; at < 3 * MB; at += MB)
        CHECK(trial_differs(block + at, MB, 1000 * trial_rank + at / MB) < 0, "shrunk: megabyte %zu differs", at / MB);
    free(block);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
