/* Writes to two stretches of memory again and again: to one what it holds already, to the other something else each time. Rank 0 counts the
 * rounds in the file `rounds`. The argument says how many megabytes each has.
 * trial: ranks=1,2 */
#include "../moving.h"
#include <sys/mman.h>

enum { WORDS = 512 };

/* With nothing mapped on either side, so that it stays a mapping of its own. */
static uint64_t *map(size_t bytes) {
    size_t apart = (size_t)2 << 20;
    char *memory = mmap(NULL, bytes + 2 * apart, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED, "%s", strerror(errno));
    memory = (char *)(((uintptr_t)memory + apart) / apart * apart);
    CHECK(mprotect(memory, bytes, PROT_READ | PROT_WRITE) == 0, "%s", strerror(errno));
    return (uint64_t *)memory;
}

static uint64_t expected(uint64_t round, size_t word) { return trial_mix(round * 1000003 + word / WORDS) + word; }

static void count(uint64_t round) {
    char path[PATH_MAX];
    trial_path(path, sizeof path, "rounds");
    FILE *file = trial_rank == 0 ? fopen(path, "w") : NULL;
    if (file) {
        fprintf(file, "%llu\n", (unsigned long long)round);
        fclose(file);
    }
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    size_t bytes = (size_t)(argc > 1 ? atol(argv[1]) : 1) << 20, words = bytes / 8;
    volatile uint64_t *same = map(bytes), *other = map(bytes);
    for (size_t word = 0; word < words; word++) {
        same[word] = expected(0, word);
        other[word] = expected(0, word);
    }
    /* Rank 0 says so in a later round. */
    if (trial_rank != 0) trial_ready();
    for (uint64_t round = 1; moving_agree(round - 1, MPI_COMM_WORLD); round++) {
        count(round);
        for (size_t word = 0; word < words; word++) {
            CHECK(other[word] == expected(round - 1, word), "word %zu is not of round %llu", word, (unsigned long long)(round - 1));
            if (trial_failures) break;
            same[word] = expected(0, word);
            other[word] = expected(round, word);
        }
    }
    for (size_t word = 0; word < words && !trial_failures; word++)
        CHECK(same[word] == expected(0, word), "word %zu has changed", word);
    return trial_finish();
}
