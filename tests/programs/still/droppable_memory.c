/* Memory whose pages the kernel may drop (MAP_DROPPABLE, Linux 6.11) stays such memory, with what it held or without.
 * trial: ranks=2 */
#include "../common.h"
#include <sys/mman.h>

#define PAGE 4096
#define PAGES 8
#define DROPPABLE 8

/* Whether the kernel shows a mark of the mapping at an address. */
static int shows(const void *address, const char *mark) {
    char line[512];
    int inside = 0, found = 0;
    FILE *smaps = fopen("/proc/self/smaps", "r");
    while (smaps && fgets(line, sizeof line, smaps)) {
        unsigned long start, end;
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2) inside = start <= (unsigned long)address && (unsigned long)address < end;
        else if (inside && strncmp(line, "VmFlags:", 8) == 0) found = strstr(line, mark) != NULL;
    }
    if (smaps) fclose(smaps);
    return found;
}

/* A page holds what was written to it, or zeros. */
static int is_kept_or_dropped(const char *page, int value) {
    int all = page[0] == value ? value : 0;
    for (int i = 0; i < PAGE; i++)
        if (page[i] != all) return 0;
    return 1;
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    char *memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, DROPPABLE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED || errno == EINVAL, "mmap: %s", strerror(errno));
    char *plain = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) {
        for (int page = 0; page < PAGES / 2; page++) memset(memory + page * PAGE, page + 1, PAGE);
        CHECK(mprotect(memory + PAGE, PAGE, PROT_READ) == 0, "mprotect: %s", strerror(errno));
        CHECK(shows(memory, " dp") && shows(memory + PAGE, " dp") && !shows(plain, " dp"), "marks before");
    }
    trial_hold();
    if (memory != MAP_FAILED) {
        CHECK(shows(memory, " dp") && shows(memory + PAGE, " dp") && shows(memory + (PAGES - 1) * PAGE, " dp") && !shows(plain, " dp"), "marks");
        for (int page = 0; page < PAGES; page++) CHECK(is_kept_or_dropped(memory + page * PAGE, page < PAGES / 2 ? page + 1 : 0), "page %d", page);
        CHECK(madvise(memory, PAGE, MADV_DODUMP) == -1 && errno == EINVAL, "it may be dumped");
        memory[PAGES / 2 * PAGE] = 1;
    }
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
