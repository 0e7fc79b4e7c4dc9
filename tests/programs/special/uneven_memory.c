/* One rank has much more memory than the others, so all wait for its image.
 * trial: ranks=3 */
#include "../common.h"

#define LARGE (192u << 20)

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    size_t words = (trial_rank == 1 ? LARGE : LARGE / 64) / sizeof(uint32_t);
    uint32_t *memory = malloc(words * sizeof *memory), word = 1 + trial_rank;
    for (size_t i = 0; i < words; i++) memory[i] = word = word * 1664525u + 1013904223u;
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    trial_hold();
    CHECK(memory[words - 1] == word, "%s", "the memory has changed");
    return trial_end();
}
