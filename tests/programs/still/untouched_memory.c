/* Half a gigabyte that was never touched, and as much that holds zeros only, take no room in the image.
 * trial: ranks=2 most_bytes=12000000 */
#include "../common.h"

#define BYTES (256u << 20)

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    char *never = malloc(2 * (size_t)BYTES), *zero = malloc(BYTES / 4);
    memset(zero, 0, BYTES / 4);
    never[BYTES] = 7;
    trial_hold();
    CHECK(never[BYTES] == 7, "the one page that was touched");
    for (size_t at = 0; at < BYTES / 4; at += 4096) CHECK(zero[at] == 0, "not zero at %zu", at);
    for (size_t at = BYTES + 4096; at < BYTES + (8u << 20); at += 4096) CHECK(never[at] == 0, "not zero at %zu", at);
    free(never);
    free(zero);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
