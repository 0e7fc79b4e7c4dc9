/* An executable that asks for a larger alignment than a page lies where its variables have theirs.
 * trial: ranks=2 flags=-z,max-page-size=0x1000000 */
#include "../common.h"

#define ALIGNMENT (1 << 24)

static _Alignas(ALIGNMENT) volatile int aligned = 1;

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    uintptr_t before = (uintptr_t)&aligned;
    CHECK(before % ALIGNMENT == 0, "it lies at %#lx", (unsigned long)before);
    trial_hold();
    CHECK((uintptr_t)&aligned == before && aligned == 1, "it lies at %p", (void *)&aligned);
    return trial_finish();
}
