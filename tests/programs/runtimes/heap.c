/* Blocks of memory that come and go, checked: for allocators and sanitizers. */
#include "steps.h"
#include <string.h>

enum { STEPS = 200, BLOCKS = 300 };

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank = steps_rank();
    static unsigned char *blocks[BLOCKS];
    static size_t sizes[BLOCKS];
    unsigned long seed = rank + 1;
    double total = 0;
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < 200; i++) {
            seed = seed * 6364136223846793005ul + 1442695040888963407ul;
            int which = (seed >> 33) % BLOCKS;
            for (size_t at = 0; at < sizes[which]; at++)
                if (blocks[which][at] != (unsigned char)(which + at)) abort();
            free(blocks[which]);
            sizes[which] = (seed >> 40) % 2000;
            blocks[which] = malloc(sizes[which]);
            for (size_t at = 0; at < sizes[which]; at++) blocks[which][at] = which + at;
        }
        total += steps_sum(sizes[step % BLOCKS]);
        if (step == STEPS / 2) steps_half_way();
    }
    for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
    MPI_Finalize();
    if (rank == 0) printf("total %.0f\n", total);
    return 0;
}
