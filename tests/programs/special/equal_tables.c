/* Every rank has the same table of as many megabytes as its first argument says, each at an address of its own; and with a second argument once
 * more, beginning at a page. Nothing of it can be compressed. What one of them has is not what another has: each is changed when all go on.
 * trial: ranks=2,3 */
#include "../common.h"

static uint64_t word(size_t i) {
    return trial_mix(i * 2 + 1);
}

static void fill(uint64_t *table, size_t words) {
    for (size_t i = 0; i < words; i++) table[i] = word(i);
}

/* Whether it is what it was, but for the words that were changed by `by`. */
static void check(const uint64_t *table, size_t words, uint64_t by, const char *which) {
    for (size_t i = 0; i < words; i++) {
        uint64_t expected = i % 100000 == 0 ? word(i) ^ by : word(i);
        if (table[i] == expected) continue;
        CHECK(0, "word %zu of the %s is %llx", i, which, (unsigned long long)table[i]);
        break;
    }
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    size_t words = ((size_t)(argc > 1 ? atol(argv[1]) : 4) << 20) / 8;
    /* A rank's own, so that tables begin at different pages. */
    size_t own = (size_t)(trial_rank + 1) * 37 * 4096;
    uint64_t *mine = malloc(own);
    for (size_t i = 0; i < own / 8; i++) mine[i] = trial_mix(i) + trial_rank;
    uint64_t *table = malloc(words * 8);
    fill(table, words);
    uint64_t *pages = NULL;
    if (argc > 2) {
        CHECK(posix_memalign((void **)&pages, 4096, words * 8) == 0, "no memory");
        fill(pages, words);
        free(table);
        CHECK(posix_memalign((void **)&table, 4096, words * 8) == 0, "no memory");
        fill(table, words);
    }
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    trial_ready();
    while (!trial_go()) usleep(1000);
    check(table, words, 0, "table");
    for (size_t i = 0; i < words; i += 100000) table[i] ^= 1 + trial_rank;
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    check(table, words, 1 + trial_rank, "changed table");
    if (pages) check(pages, words, 0, "second table");
    for (size_t i = 0; i < own / 8; i++)
        if (mine[i] != trial_mix(i) + trial_rank) {
            CHECK(0, "own word %zu has changed", i);
            break;
        }
    return trial_finish();
}
