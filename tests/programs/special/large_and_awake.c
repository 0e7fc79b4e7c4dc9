/* Has as many megabytes as its argument says, a quarter of which can be compressed away: worth a try that takes long. It looks at the clock
 * all the time: the longest time for which rank 0 could not is in the file `gap` when it ends. With a second argument, no file that rank 1 writes
 * may have more megabytes than that.
 * trial: ranks=1 */
#include "../common.h"
#include <sys/resource.h>

static uint64_t value(size_t i) { return trial_mix(i) & 0xffffffffffff; }

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    size_t bytes = (size_t)(argc > 1 ? atol(argv[1]) : 1) << 20;
    uint64_t *memory = malloc(bytes);
    for (size_t i = 0; i < bytes / 8; i++) memory[i] = value(i);
    if (argc > 2 && trial_rank == 1) {
        rlim_t most = (rlim_t)atol(argv[2]) << 20;
        struct rlimit limit = {most, most};
        CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0, "%s", strerror(errno));
    }
    trial_ready();
    double longest = 0, before = trial_seconds();
    while (!trial_go()) {
        for (int i = 0; i < 1000; i++) {
            double now = trial_seconds();
            if (now - before > longest) longest = now - before;
            before = now;
        }
    }
    for (size_t i = 0; i < bytes / 8; i++)
        if (memory[i] != value(i)) {
            CHECK(0, "word %zu has changed", i);
            break;
        }
    char path[PATH_MAX];
    trial_path(path, sizeof path, "gap");
    FILE *file = trial_rank == 0 ? fopen(path, "w") : NULL;
    if (file) {
        fprintf(file, "%.3f\n", longest);
        fclose(file);
    }
    return trial_finish();
}
