/* trial: ranks=1 flags=-ldl
 * Computes with a library that has a CUDA runtime linked into it, which is how most programs come to a driver (`ci/gpu-acceptance.cu`, made by nvcc):
 *   runtime LIBRARY STEPS
 * It is ready behind its first steps, and waits before its last ones until it is let go. Afterwards it says a digest of all that was computed.
 */
#include "../common.h"
#include <dlfcn.h>

enum { FIRST = 5, LAST = 5 };

static void *function(void *library, const char *name) {
    void *found = dlsym(library, name);
    if (found) return found;
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    void *library = argc > 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!library) {
        fprintf(stderr, "runtime LIBRARY STEPS: %s\n", argc > 2 ? dlerror() : "too few arguments");
        return 1;
    }
    int (*begin)(int) = (int (*)(int))function(library, "runtime_begin");
    int (*step)(double) = (int (*)(double))function(library, "runtime_step");
    int (*digest)(uint64_t *) = (int (*)(uint64_t *))function(library, "runtime_digest");
    long steps = atol(argv[2]);
    CHECK(begin(trial_rank) == 0, "%s", "the runtime does not begin");
    for (long at = 0; at < steps && trial_failures == 0; at++) {
        if (at == FIRST) trial_ready();
        if (at == steps - LAST) trial_wait();
        double own = (double)(trial_rank + at), sum;
        MUST(MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
        CHECK(step(sum / 1024) == 0, "step %ld failed", at);
    }
    uint64_t mine = 0, all = 0;
    CHECK(digest(&mine) == 0, "%s", "no digest");
    MUST(MPI_Reduce(&mine, &all, 1, MPI_UINT64_T, MPI_BXOR, 0, MPI_COMM_WORLD));
    if (trial_rank == 0) printf("digest %016llx\n", (unsigned long long)all);
    return trial_end();
}
