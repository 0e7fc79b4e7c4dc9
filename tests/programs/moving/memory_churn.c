/* Blocks of all sizes are allocated, grown, mapped, protected and freed without pause, while ranks agree on going on.
 * trial: ranks=2 */
#include "../moving.h"
#include <sys/mman.h>

#define SLOTS 64

struct block {
    char *at;
    size_t bytes;
    uint64_t seed;
    int mapped;
};

/* The first page is filled; the last byte of a longer block is marked. */
static size_t filled(size_t bytes) { return bytes < 4096 ? bytes : 4096; }

static void fill(struct block *block) {
    trial_fill(block->at, filled(block->bytes), block->seed);
    if (block->bytes > 4096) block->at[block->bytes - 1] = (char)block->seed;
}

static void check(const struct block *block, size_t bytes, const char *when) {
    CHECK(trial_differs(block->at, filled(bytes), block->seed) < 0, "%s: the start of a block of %zu bytes", when, block->bytes);
    CHECK(bytes <= 4096 || bytes < block->bytes || block->at[bytes - 1] == (char)block->seed, "%s: the end of a block", when);
}

static void release(struct block *block) {
    if (block->mapped) munmap(block->at, block->bytes);
    else free(block->at);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    struct block blocks[SLOTS] = {{0}};
    for (uint64_t round = 0; moving_agree(round, MPI_COMM_WORLD); round++)
        for (int step = 0; step < 40; step++) {
            uint64_t draw = trial_mix(round * 100 + step + (uint64_t)trial_rank * 1000003);
            struct block *block = &blocks[draw % SLOTS];
            size_t bytes = 16 + (draw >> 8) % ((draw >> 60) == 0 ? 8u << 20 : 20000);
            if (block->at) check(block, block->bytes, "as left");
            if ((draw >> 50) % 4 == 0 && block->at && !block->mapped) {
                size_t before = block->bytes;
                block->at = realloc(block->at, bytes);
                block->bytes = bytes;
                if (bytes <= before) check(block, filled(bytes), "shrunk");
                else check(block, before, "grown");
            } else {
                if (block->at) release(block);
                block->mapped = (draw >> 50) % 4 == 1;
                block->bytes = bytes;
                block->at = block->mapped ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : malloc(bytes);
            }
            block->seed = draw;
            fill(block);
            if (block->mapped && step % 8 == 0) {
                mprotect(block->at, block->bytes, PROT_READ);
                mprotect(block->at, block->bytes, PROT_READ | PROT_WRITE);
            }
        }
    for (int i = 0; i < SLOTS; i++)
        if (blocks[i].at) release(&blocks[i]);
    return trial_finish();
}
