/* The range of addresses that a GPU's driver keeps for itself (0x2_0000_0000 .. 0x10_0000_0000) is the program's, used as such a driver uses it: one
 * large reservation that costs nothing, mappings put over parts of it, holes, what moves, and what is asked for when all is taken.
 * trial: ranks=2 most_bytes=16000000 */
#include "../common.h"
#include <sys/mman.h>

#define GIB (1ul << 30)
#define MIB (1ul << 20)
#define START 0x200000000ul
#define END 0x1000000000ul
#define KEPT (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)
#define OPEN (PROT_READ | PROT_WRITE)

static char *at(uintptr_t offset) { return (char *)(START + offset); }

static void *map(char *place, size_t bytes, int protection, int flags) { return mmap(place, bytes, protection, flags, -1, 0); }

static void put(uintptr_t offset, size_t bytes, int protection, int flags) {
    void *got = map(at(offset), bytes, protection, flags);
    CHECK(got == at(offset), "%#lx: %p, %s", (unsigned long)(START + offset), got, got == MAP_FAILED ? strerror(errno) : "elsewhere");
}

/* What of [from, to) is mapped, in bytes, as the kernel says. */
static size_t mapped(uintptr_t from, uintptr_t to) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[PATH_MAX];
    size_t bytes = 0;
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long start, end;
        if (sscanf(line, "%lx-%lx", &start, &end) != 2) continue;
        if (start < from) start = from;
        if (end > to) end = to;
        if (start < end) bytes += end - start;
    }
    if (maps) fclose(maps);
    return bytes;
}

static void check(const char *when) {
    CHECK(trial_differs(at(0), 4096, trial_rank) < 0, "the first page, %s", when);
    CHECK(trial_differs(at(6 * MIB), 2 * MIB, trial_rank + 1) < 0, "over the reservation, %s", when);
    CHECK(trial_differs(at(20 * GIB + MIB), MIB, trial_rank + 2) < 0, "between holes, %s", when);
    CHECK(trial_differs(at(40 * GIB), MIB, trial_rank + 3) < 0, "what was moved there, %s", when);
    CHECK(mapped(START, END) == END - START - 2 * MIB - GIB, "%#zx bytes are mapped, %s", mapped(START, END), when);
    /* Only what is not there can be had. */
    void *got = map(at(20 * GIB), MIB, PROT_NONE, KEPT | MAP_FIXED_NOREPLACE);
    CHECK(got == at(20 * GIB), "a hole, %s: %s", when, strerror(errno));
    munmap(at(20 * GIB), MIB);
    got = map(at(10 * GIB), MIB, PROT_NONE, KEPT | MAP_FIXED_NOREPLACE);
    CHECK(got == MAP_FAILED && errno == EEXIST, "what is kept, %s: %p", when, got);
    got = map(at(10 * GIB), MIB, PROT_NONE, KEPT);
    CHECK(got != MAP_FAILED && ((uintptr_t)got < START || (uintptr_t)got >= END), "a hint that is taken, %s: %p", when, got);
    munmap(got, MIB);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    CHECK(mapped(START, END) == 0, "%#zx bytes are taken", mapped(START, END));
    /* A hint first, then the rest where nothing is. */
    put(0, 2 * MIB, PROT_NONE, KEPT);
    put(2 * MIB, END - START - 2 * MIB, PROT_NONE, KEPT | MAP_FIXED_NOREPLACE);
    CHECK(mapped(START, END) == END - START, "%#zx bytes are kept", mapped(START, END));
    put(0, 4096, OPEN, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED);
    trial_fill(at(0), 4096, trial_rank);
    put(6 * MIB, 2 * MIB, OPEN, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED);
    trial_fill(at(6 * MIB), 2 * MIB, trial_rank + 1);
    put(20 * GIB, 3 * MIB, OPEN, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED);
    trial_fill(at(20 * GIB + MIB), MIB, trial_rank + 2);
    CHECK(munmap(at(20 * GIB), MIB) == 0 && munmap(at(20 * GIB + 2 * MIB), MIB) == 0, "holes: %s", strerror(errno));
    CHECK(munmap(at(30 * GIB), GIB) == 0, "a large hole: %s", strerror(errno));
    char *elsewhere = map(NULL, MIB, OPEN, MAP_PRIVATE | MAP_ANONYMOUS);
    trial_fill(elsewhere, MIB, trial_rank + 3);
    void *moved = mremap(elsewhere, MIB, MIB, MREMAP_MAYMOVE | MREMAP_FIXED, at(40 * GIB));
    CHECK(moved == at(40 * GIB), "moved to %p: %s", moved, strerror(errno));
    check("before");
    trial_hold();
    check("after");
    /* It is still the program's to give back, and to have again. */
    CHECK(munmap(at(0), END - START) == 0, "all of it: %s", strerror(errno));
    CHECK(mapped(START, END) == 0, "%#zx bytes are left", mapped(START, END));
    put(0, END - START, PROT_NONE, KEPT | MAP_FIXED_NOREPLACE);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
