/* The main thread's stack grows as far as the program allows at run time: it raises its soft limit, recurses far below where the old one ended, and is
 * checkpointed there; afterwards it goes deeper once more, and as far as pthread_getattr_np says.
 * trial: ranks=2 flags=-pthread */
#include "../common.h"
#include <pthread.h>
#include <sys/resource.h>

#define FRAME 65536
#define MIB 16 /* frames in a MiB */

static int held;

static int descend(int depth, int hold_at) {
    volatile unsigned char frame[FRAME];
    frame[0] = (unsigned char)depth, frame[FRAME - 1] = (unsigned char)(depth >> 8);
    if (depth == hold_at && !held++) trial_hold();
    int below = depth ? descend(depth - 1, hold_at) : 0;
    CHECK(frame[0] == (unsigned char)depth && frame[FRAME - 1] == (unsigned char)(depth >> 8), "frame %d was changed", depth);
    return below + 1;
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    struct rlimit limit;
    getrlimit(RLIMIT_STACK, &limit);
    limit.rlim_cur = limit.rlim_max;
    CHECK(setrlimit(RLIMIT_STACK, &limit) == 0, "setrlimit: %s", strerror(errno));
    int most = limit.rlim_max == RLIM_INFINITY || limit.rlim_max > (100u << 20) ? 64 : (int)(limit.rlim_max >> 20) / 2;
    CHECK(descend(most * MIB, most * MIB / 8) == most * MIB + 1, "frames");
    CHECK(descend(most * MIB * 5 / 4, -1) == most * MIB * 5 / 4 + 1, "frames after it");
    pthread_attr_t attributes;
    void *low;
    size_t bytes;
    CHECK(pthread_getattr_np(pthread_self(), &attributes) == 0 && pthread_attr_getstack(&attributes, &low, &bytes) == 0, "the stack's place");
    CHECK((char *)low < (char *)&limit && (char *)&limit < (char *)low + bytes && bytes >= (size_t)most << 20, "%zu bytes from %p", bytes, low);
    pthread_attr_destroy(&attributes);
    return trial_finish();
}
