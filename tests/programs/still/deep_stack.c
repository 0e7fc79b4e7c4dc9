/* The checkpoint comes deep inside a recursion; afterwards it returns through every frame and goes deeper once more.
 * trial: ranks=2 */
#include "../common.h"

static uint64_t descend(int depth, int hold_at) {
    volatile unsigned char frame[4000];
    for (unsigned i = 0; i < sizeof frame; i += 8) frame[i] = (unsigned char)(depth + i);
    if (depth == hold_at) trial_hold();
    uint64_t below = depth ? descend(depth - 1, hold_at) : 0;
    for (unsigned i = 0; i < sizeof frame; i += 8)
        CHECK(frame[i] == (unsigned char)(depth + i), "frame %d was changed at %u", depth, i);
    return below + frame[8];
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    /* 4 MB of stack at the checkpoint, 6 MB afterwards. */
    uint64_t sum = descend(1500, 450), expected = 0;
    for (int depth = 0; depth <= 1500; depth++) expected += (unsigned char)(depth + 8);
    CHECK(sum == expected, "sum %llu", (unsigned long long)sum);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
