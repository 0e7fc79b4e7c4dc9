/* Mappings grow in place, shrink, are cut, joined, moved, mapped over, dropped, protected and made of huge pages without pause; every page
 * holds what was written to it last.
 * trial: ranks=2 */
#include "../moving.h"
#include <sys/mman.h>

#define SLOTS 6
#define ROOM 96
#define PAGE 4096
#define COLLAPSE 25 /* MADV_COLLAPSE, Linux 6.1 */

/* An area lies at the start of addresses that are kept for it; the rest of them is not accessible. Its pages hold the seeds' words, or zeros for 0. */
struct area {
    char *at;
    int pages;
    uint64_t seeds[ROOM];
};

static struct area areas[SLOTS];
static uint64_t draws;

static uint64_t draw(void) { return draws = trial_mix(draws); }
static int below(int most) { return (int)((draw() >> 20) % (uint64_t)most); }

static void *mapped(void *at, size_t bytes, int protection, int flags) {
    void *got = mmap(at, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    CHECK(got != MAP_FAILED && (!at || got == at), "mmap: %s", strerror(errno));
    return got;
}

static void keep(char *at, int pages) {
    if (pages) mapped(at, (size_t)pages * PAGE, PROT_NONE, MAP_FIXED | MAP_NORESERVE);
}

static char *page(const struct area *area, int number) { return area->at + (size_t)number * PAGE; }

static void write_page(struct area *area, int number) {
    uint64_t seed = area->seeds[number] = draw() | 1, *words = (uint64_t *)page(area, number);
    for (int i = 0; i < PAGE / 8; i += 8) words[i] = seed + (uint64_t)i;
    words[PAGE / 8 - 1] = seed;
}

static void check_page(const struct area *area, int number, const char *when) {
    uint64_t seed = area->seeds[number], *words = (uint64_t *)page(area, number), wrong = 0;
    for (int i = 0; i < PAGE / 8; i += 8) wrong |= words[i] ^ (seed ? seed + (uint64_t)i : 0);
    wrong |= words[PAGE / 8 - 1] ^ seed;
    CHECK(!wrong, "%s: page %d of area %ld", when, number, (long)(area - areas));
}

static void check(const char *when) {
    for (int i = 0; i < SLOTS; i++)
        for (int number = 0; number < areas[i].pages; number++) check_page(&areas[i], number, when);
}

static void grow(struct area *area, int in_place) {
    int more = ROOM - area->pages < 8 ? ROOM - area->pages : 1 + below(8);
    if (!more) return;
    size_t bytes = (size_t)area->pages * PAGE;
    char *end = area->at + bytes;
    if (in_place) {
        /* As realloc of a large array. Where the area has several mappings, it cannot be done. */
        munmap(end, (size_t)more * PAGE);
        void *got = mremap(area->at, bytes, bytes + (size_t)more * PAGE, 0);
        CHECK(got == area->at || (got == MAP_FAILED && (errno == EFAULT || errno == ENOMEM)), "mremap: %s", strerror(errno));
        if (got == MAP_FAILED) {
            keep(end, more);
            return;
        }
    } else {
        mapped(end, (size_t)more * PAGE, PROT_READ | PROT_WRITE, MAP_FIXED);
    }
    for (int i = 0; i < more; i++) {
        area->seeds[area->pages] = 0;
        if (below(2)) write_page(area, area->pages);
        area->pages++;
    }
}

static void shrink(struct area *area) {
    int less = below(area->pages), left = area->pages - less;
    if (below(2)) {
        keep(page(area, left), less);
    } else {
        void *got = less ? mremap(area->at, (size_t)area->pages * PAGE, (size_t)left * PAGE, 0) : area->at;
        if (got == MAP_FAILED) munmap(page(area, left), (size_t)less * PAGE);
        keep(page(area, left), less);
    }
    area->pages = left;
}

/* A page at a time: an area may have many mappings. */
static void move(struct area *area) {
    char *to = mapped(NULL, (size_t)ROOM * PAGE, PROT_NONE, MAP_NORESERVE), *from = area->at;
    for (int i = 0; i < area->pages; i++) {
        void *got = mremap(page(area, i), PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to + (size_t)i * PAGE);
        CHECK(got == to + (size_t)i * PAGE, "mremap: %s", strerror(errno));
    }
    munmap(from, (size_t)ROOM * PAGE);
    area->at = to;
}

/* Pages of one area come to lie over another's. */
static void move_over(struct area *area, struct area *other) {
    if (area == other) return;
    int from = below(area->pages), to = below(other->pages);
    void *got = mremap(page(area, from), PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, page(other, to));
    CHECK(got == page(other, to), "mremap: %s", strerror(errno));
    mapped(page(area, from), PAGE, PROT_READ | PROT_WRITE, MAP_FIXED);
    other->seeds[to] = area->seeds[from];
    area->seeds[from] = 0;
}

static void drop(struct area *area) {
    int first = below(area->pages), count = 1 + below(area->pages - first);
    if (below(2)) {
        CHECK(madvise(page(area, first), (size_t)count * PAGE, MADV_DONTNEED) == 0, "MADV_DONTNEED: %s", strerror(errno));
    } else {
        mapped(page(area, first), (size_t)count * PAGE, PROT_READ | PROT_WRITE, MAP_FIXED);
    }
    memset(area->seeds + first, 0, sizeof(uint64_t) * (size_t)count);
}

static void step(void) {
    struct area *area = &areas[below(SLOTS)];
    switch (below(21)) {
    case 0: case 1: case 2: grow(area, 1); break;
    case 3: grow(area, 0); break;
    case 4: shrink(area); break;
    case 5: move(area); break;
    case 6: case 7: move_over(area, &areas[below(SLOTS)]); break;
    case 8: drop(area); break;
    case 9: {
        int number = below(area->pages);
        mprotect(page(area, number), PAGE, PROT_READ);
        check_page(area, number, "read only");
        if (below(2)) mprotect(page(area, number), PAGE, PROT_NONE);
        mprotect(page(area, number), PAGE, PROT_READ | PROT_WRITE);
        break;
    }
    case 10: {
        char *huge = (char *)(((uintptr_t)area->at + (2 << 20) - 1) & ~(uintptr_t)((2 << 20) - 1));
        madvise(area->at, (size_t)area->pages * PAGE, below(2) ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
        madvise(huge, 2 << 20, COLLAPSE);
        break;
    }
    default:
        for (int i = below(6); i >= 0; i--) write_page(area, below(area->pages));
    }
}

/* A huge page's addresses and the pages around them: made of a huge page, cut, and written to. */
static void huge(uint64_t round) {
    static char *at;
    static uint64_t last;
    size_t bytes = 2 << 20;
    if (at && round % 8 == 0) {
        munmap(at, bytes);
        at = NULL;
    }
    if (!at) {
        at = mapped(NULL, bytes, PROT_READ | PROT_WRITE, 0);
        madvise(at, bytes, MADV_HUGEPAGE);
        memset(at, 0, bytes);
        last = 0;
    }
    for (size_t i = 0; i < bytes; i += bytes / 8) CHECK(*(uint64_t *)(at + i) == (last ? last + i : 0), "a huge page at %zu", i);
    last = round + 1;
    for (size_t i = 0; i < bytes; i += bytes / 8) *(uint64_t *)(at + i) = last + i;
    if (round % 3 == 0) {
        mprotect(at + PAGE, PAGE, PROT_READ);
        mprotect(at + PAGE, PAGE, PROT_READ | PROT_WRITE);
    }
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    draws = trial_mix((argc > 1 ? strtoull(argv[1], NULL, 10) : 1) * 1000 + (uint64_t)trial_rank);
    for (int i = 0; i < SLOTS; i++) {
        areas[i].at = mapped(NULL, (size_t)ROOM * PAGE, PROT_NONE, MAP_NORESERVE);
        areas[i].pages = 1;
        mapped(areas[i].at, PAGE, PROT_READ | PROT_WRITE, MAP_FIXED);
    }
    for (uint64_t round = 0; moving_agree(round, MPI_COMM_WORLD); round++) {
        for (int i = 0; i < 30; i++) step();
        huge(round);
        check("as left");
    }
    return trial_finish();
}
