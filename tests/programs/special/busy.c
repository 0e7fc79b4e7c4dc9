/* trial: ranks=8
 *
 * Never sleeps, and waits for nobody: every rank keeps a processor busy, and there are more ranks than processors. The memory of each holds
 * what cannot be compressed. */
#include "../common.h"

#define BYTES ((size_t)40 << 20)

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    unsigned char *memory = malloc(BYTES);
    trial_fill(memory, BYTES, (uint64_t)trial_rank);
    trial_ready();
    while (!trial_go()) trial_compute(0.05);
    CHECK(trial_differs(memory, BYTES, (uint64_t)trial_rank) < 0, "memory has changed");
    free(memory);
    return trial_end();
}
