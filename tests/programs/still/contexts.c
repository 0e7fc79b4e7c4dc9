/* Jump buffers and user contexts with stacks of their own, made before, are used afterwards.
 * trial: ranks=2 */
#include "../common.h"
#include <setjmp.h>
#include <ucontext.h>

static ucontext_t main_context, other;
static char stack[256 << 10];
static int visits;

static void coroutine(void) {
    volatile double local = 1.5;
    for (;;) {
        visits++;
        local *= 2;
        CHECK(local == 1.5 * (1 << visits), "local variable %f at visit %d", local, visits);
        if (visits == 3) trial_hold();
        swapcontext(&other, &main_context);
    }
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    static jmp_buf place;
    volatile int jumps = 0;
    getcontext(&other);
    other.uc_stack.ss_sp = stack;
    other.uc_stack.ss_size = sizeof stack;
    makecontext(&other, coroutine, 0);
    int came = setjmp(place);
    CHECK(came == jumps, "jumped with %d", came);
    for (int i = 0; i < 2; i++) swapcontext(&main_context, &other);
    if (jumps < 3) {
        jumps++;
        longjmp(place, jumps);
    }
    CHECK(visits == 8, "%d visits", visits);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
