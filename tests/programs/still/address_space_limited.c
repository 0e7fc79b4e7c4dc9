/* A program that limits its address space to what it has (RLIMIT_AS), but for 2 MiB: it is checkpointed all the same, and has its limit afterwards.
 * trial: ranks=2 */
#include "../common.h"
#include <sys/mman.h>
#include <sys/resource.h>

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    enum { BYTES = 16 << 20 };
    char *memory = malloc(BYTES);
    trial_fill(memory, BYTES, (uint64_t)trial_rank);
    long pages = 0;
    FILE *status = fopen("/proc/self/statm", "r");
    CHECK(status && fscanf(status, "%ld", &pages) == 1, "statm");
    fclose(status);
    struct rlimit before, limit;
    getrlimit(RLIMIT_AS, &before);
    limit = before;
    limit.rlim_cur = (rlim_t)pages * 4096 + (2 << 20);
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit: %s", strerror(errno));
    trial_hold();
    struct rlimit after;
    getrlimit(RLIMIT_AS, &after);
    CHECK(after.rlim_cur == limit.rlim_cur && after.rlim_max == limit.rlim_max, "a limit of %llu bytes, not %llu", (unsigned long long)after.rlim_cur,
          (unsigned long long)limit.rlim_cur);
    CHECK(mmap(NULL, 1u << 30, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED, "more than the limit");
    CHECK(setrlimit(RLIMIT_AS, &before) == 0, "setrlimit: %s", strerror(errno));
    CHECK(trial_differs(memory, BYTES, (uint64_t)trial_rank) < 0, "memory");
    return trial_finish();
}
