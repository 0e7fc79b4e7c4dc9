/* Memory that is locked page by page as it is touched (MLOCK_ONFAULT, MCL_ONFAULT) is locked that way afterwards, and not filled.
 * trial: ranks=2 */
#include "../common.h"
#include <sys/mman.h>

#define PAGE 4096
#define PAGES 64

static struct locked {
    int locked, on_fault;
    long kilobytes;
} look(const void *address) {
    char line[512];
    int inside = 0;
    struct locked found = {0, 0, -1};
    FILE *smaps = fopen("/proc/self/smaps", "r");
    while (smaps && fgets(line, sizeof line, smaps)) {
        unsigned long start, end;
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2) inside = start <= (unsigned long)address && (unsigned long)address < end;
        else if (inside && strncmp(line, "Rss:", 4) == 0) found.kilobytes = atol(line + 4);
        else if (inside && strncmp(line, "VmFlags:", 8) == 0) found.locked = !!strstr(line, " lo"), found.on_fault = !!strstr(line, " lf");
    }
    if (smaps) fclose(smaps);
    return found;
}

static char *map(void) {
    char *memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED, "mmap: %s", strerror(errno));
    /* Not one mapping with its neighbours. */
    mmap(memory + (PAGES - 1) * PAGE, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    return memory;
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    char *touched = map(), *whole = map();
    int locks = mlock2(touched, (PAGES - 1) * PAGE, MLOCK_ONFAULT) == 0 && mlock(whole, (PAGES - 1) * PAGE) == 0;
    memset(touched + 3 * PAGE, 3, 2 * PAGE);
    int future = locks && mlockall(MCL_FUTURE | MCL_ONFAULT) == 0;
    trial_hold();
    struct locked first = look(touched), second = look(whole);
    if (locks) {
        CHECK(first.locked && first.on_fault && first.kilobytes == 8, "locked %d, on fault %d, %ld KiB", first.locked, first.on_fault, first.kilobytes);
        CHECK(second.locked && !second.on_fault && second.kilobytes == 4 * (PAGES - 1), "locked %d, on fault %d, %ld KiB", second.locked, second.on_fault, second.kilobytes);
    }
    CHECK(touched[3 * PAGE] == 3 && touched[5 * PAGE - 1] == 3 && touched[5 * PAGE] == 0 && whole[PAGE] == 0, "contents");
    if (future) {
        struct locked later = look(map());
        CHECK(later.locked && later.on_fault && later.kilobytes == 0, "new memory: locked %d, on fault %d, %ld KiB", later.locked, later.on_fault, later.kilobytes);
    }
    munlockall();
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
