/* An executable that asks for a larger alignment than a page lies where its variables have theirs.
 * trial: ranks=2 flags=-z,max-page-size=0x1000000 */
#include "../common.h"

#define ALIGNMENT (1 << 24)

static _Alignas(ALIGNMENT) int aligned = 1;
/* The compiler takes the alignment for granted: it must not see what this leads to. */
static int *volatile it = &aligned;

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    uintptr_t before = (uintptr_t)it;
    CHECK(before % ALIGNMENT == 0, "it lies at %#lx", (unsigned long)before);
    trial_hold();
    CHECK((uintptr_t)it == before && *it == 1, "it lies at %p", (void *)it);
    return trial_finish();
}
