/* AddressSanitizer and UndefinedBehaviorSanitizer know after a restart what they knew before: what is allocated, what was freed.
 * trial: ranks=2 flags=-fsanitize=address,-fsanitize=undefined,-fsanitize-recover=all */
#include "../common.h"
#include <sanitizer/asan_interface.h>

/* The MPI library leaves memory behind at the end. */
const char *__asan_default_options(void) { return "detect_leaks=0:halt_on_error=0:print_summary=0:log_path=/dev/null"; }

static volatile int reports;
/* Out of the compiler's sight. */
static char *volatile freed;
static void reported(const char *text) { reports += strstr(text, "heap-use-after-free") || strstr(text, "heap-buffer-overflow"); }

#define BLOCKS 200

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    __asan_set_error_report_callback(reported);
    char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(100 + 1000 * i);
        trial_fill(blocks[i], 100 + 1000 * i, trial_rank + i);
    }
    freed = malloc(333);
    free(freed);
    trial_hold();
    for (int i = 0; i < BLOCKS; i++) {
        CHECK(trial_differs(blocks[i], 100 + 1000 * i, trial_rank + i) < 0, "block %d", i);
        CHECK(!__asan_address_is_poisoned(blocks[i] + 99 + 1000 * i), "the end of block %d", i);
        CHECK(__asan_address_is_poisoned(blocks[i] + 100 + 1000 * i), "behind block %d", i);
    }
    CHECK(__asan_address_is_poisoned(freed), "what was freed");
    volatile char seen = freed[5];
    CHECK(reports == 1, "%d reports of use after free", reports);
    seen += ((volatile char *)blocks[0])[100];
    CHECK(reports == 2, "%d reports of an overflow", reports);
    for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
    char *large = malloc(64 << 20);
    memset(large, 1, 64 << 20);
    free(large);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
