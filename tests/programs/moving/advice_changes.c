/* Advice on memory, locks and mappings change without pause; each time the kernel tells of what was asked for, and memory holds what it held. What a
 * checkpoint has seen a moment before may be otherwise when it is written.
 * trial: ranks=2 */
#include "../moving.h"
#include <sys/mman.h>

enum { REGIONS = 12, PAGE = 4096, BYTES = 4 * PAGE };

/* Letters of smaps, and the calls that make them come and go. */
static const struct advice {
    const char *letters;
    int sets, takes_back;
} advices[] = {
    {"dd", MADV_DONTDUMP, MADV_DODUMP},
    {"dc", MADV_DONTFORK, MADV_DOFORK},
    {"wf", MADV_WIPEONFORK, MADV_KEEPONFORK},
    {"sr", MADV_SEQUENTIAL, MADV_NORMAL},
};
enum { ADVICES = sizeof advices / sizeof advices[0], LOCKED = ADVICES, ALL };

static struct region {
    char *at;
    uint64_t seed;
    int has[ALL];
} regions[REGIONS];

static void write_to(struct region *region, uint64_t seed) {
    CHECK(mprotect(region->at, BYTES, PROT_READ | PROT_WRITE) == 0, "mprotect: %s", strerror(errno));
    region->seed = seed;
    trial_fill(region->at, BYTES, seed);
    /* Read-only most of the time: nobody is to conclude from that that nothing was written. */
    CHECK(mprotect(region->at, BYTES, PROT_READ) == 0, "mprotect: %s", strerror(errno));
}

static void map(struct region *region, uint64_t draw) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | ((draw & 1) ? MAP_NORESERVE : 0);
    munmap(region->at, BYTES);
    CHECK(mmap(region->at, BYTES, PROT_READ, flags, -1, 0) == region->at, "mmap: %s", strerror(errno));
    memset(region->has, 0, sizeof region->has);
    region->seed = 0;
    if (draw & 2) write_to(region, draw | 1);
}

static void change(struct region *region, uint64_t draw) {
    int which = (int)((draw >> 8) % (ALL + 2));
    if (which == ALL) map(region, draw);
    else if (which == ALL + 1) write_to(region, draw | 1);
    else {
        int *has = &region->has[which], done = 0;
        if (which == LOCKED) done = *has ? munlock(region->at, BYTES) : mlock(region->at, BYTES);
        else done = madvise(region->at, BYTES, *has ? advices[which].takes_back : advices[which].sets);
        CHECK(done == 0, "advice %d: %s", which, strerror(errno));
        *has = !*has;
    }
}

/* Whether the kernel tells what is expected of every region. */
static void check(void) {
    FILE *smaps = fopen("/proc/self/smaps", "r");
    CHECK(smaps, "smaps: %s", strerror(errno));
    if (!smaps) return;
    char line[4096];
    struct region *region = NULL;
    int seen = 0;
    while (fgets(line, sizeof line, smaps)) {
        unsigned long start, end;
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2) {
            region = NULL;
            for (int i = 0; i < REGIONS; i++)
                if ((char *)start == regions[i].at && end - start == BYTES) region = &regions[i];
        } else if (region && strncmp(line, "VmFlags:", 8) == 0) {
            seen++;
            for (int which = 0; which < ALL; which++) {
                char letters[8];
                snprintf(letters, sizeof letters, " %s", which == LOCKED ? "lo" : advices[which].letters);
                CHECK(!!strstr(line, letters) == region->has[which], "region %d, %s: %s", (int)(region - regions), letters, line);
            }
        }
    }
    fclose(smaps);
    CHECK(seen == REGIONS, "%d regions are there", seen);
    for (int i = 0; i < REGIONS; i++)
        if (regions[i].seed) CHECK(trial_differs(regions[i].at, BYTES, regions[i].seed) < 0, "region %d holds something else", i);
        else
            for (int byte = 0; byte < BYTES; byte += 512) CHECK(regions[i].at[byte] == 0, "region %d is not empty", i);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    /* Pages between them that cannot be touched: no two become one mapping. */
    char *all = mmap(NULL, REGIONS * (BYTES + PAGE), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(all != MAP_FAILED, "mmap: %s", strerror(errno));
    for (int i = 0; i < REGIONS; i++) {
        regions[i].at = all + i * (BYTES + PAGE);
        map(&regions[i], trial_mix((uint64_t)i));
    }
    for (uint64_t round = 0; moving_agree(round, MPI_COMM_WORLD); round++) {
        for (uint64_t step = 0; step < 60; step++) {
            uint64_t draw = trial_mix(round * 1000 + step * 10 + (uint64_t)trial_rank * 1000003);
            change(&regions[draw % REGIONS], draw);
        }
        check();
    }
    return trial_finish();
}
