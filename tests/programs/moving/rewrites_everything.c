/* Writes all of its memory again and again, page after page, and looks at each before it does: memory of two moments in one image, a page too
 * new or too old, is found after a restart. A shared mapping, one that children do not get, one that they get empty, and a file that has lost
 * its name are written in turn with the rest; what a system call writes is among it.
 * trial: ranks=1,2 */
#include "../moving.h"
#include <sys/mman.h>

enum { PAGES = 6000, WORDS = 512, OTHERS = 40 };

/* What a page holds in a round. */
static uint64_t expected(uint64_t round, size_t page, size_t word) { return trial_mix(round * 1000003 + page) + word; }

static void look_and_write(uint64_t *page, size_t number, uint64_t round) {
    CHECK(page[0] == expected(round - 1, number, 0) && page[WORDS - 1] == expected(round - 1, number, WORDS - 1),
          "page %zu is not of round %llu", number, (unsigned long long)(round - 1));
    for (size_t word = 0; word < WORDS; word++) page[word] = expected(round, number, word);
}

static void first(uint64_t *page, size_t number) {
    for (size_t word = 0; word < WORDS; word++) page[word] = expected(0, number, word);
}

static uint64_t *map(int flags, int advice) {
    uint64_t *memory = mmap(NULL, OTHERS * 4096, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED, "%s", strerror(errno));
    if (advice) CHECK(madvise(memory, OTHERS * 4096, advice) == 0, "%s", strerror(errno));
    for (size_t page = 0; page < OTHERS; page++) first(memory + page * WORDS, PAGES + page);
    return memory;
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    uint64_t *memory = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED, "%s", strerror(errno));
    for (size_t page = 0; page < PAGES; page++) first(memory + page * WORDS, page);
    uint64_t *others[] = {map(MAP_SHARED, 0), map(MAP_PRIVATE, MADV_DONTFORK), map(MAP_PRIVATE, MADV_WIPEONFORK)};
    char path[PATH_MAX];
    trial_own_file(path, sizeof path, "nameless");
    int file = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    CHECK(file >= 0 && unlink(path) == 0, "%s: %s", path, strerror(errno));
    uint64_t page[WORDS];
    first(page, 0);
    CHECK(pwrite(file, page, 4096, 0) == 4096, "%s", strerror(errno));
    for (uint64_t round = 1; moving_agree(round - 1, MPI_COMM_WORLD); round++) {
        for (size_t number = 0; number < PAGES; number++) {
            look_and_write(memory + number * WORDS, number, round);
            if (number % 150 == 0) {
                size_t other = number / 150;
                for (int which = 0; which < 3; which++) look_and_write(others[which] + other * WORDS, PAGES + other, round);
            }
        }
        /* The kernel writes here. */
        CHECK(pread(file, page, 4096, 0) == 4096, "%s", strerror(errno));
        look_and_write(page, 0, round);
        CHECK(pwrite(file, page, 4096, 0) == 4096, "%s", strerror(errno));
        CHECK(pread(file, memory, 4096, 0) == 4096, "%s", strerror(errno));
    }
    close(file);
    return trial_finish();
}
