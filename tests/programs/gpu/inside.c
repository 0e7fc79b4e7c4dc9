/* trial: ranks=2 flags=-ldl,-pthread
 * A thread that is nearly always inside the driver or the allocator: whoever stops it stops it there, and then it holds what a checkpoint's
 * lock waits for. Another one is nearly always in MPI calls, which ask the driver what their buffers are. Ranks count rounds together, until
 * they may go; device memory counts too.
 */
#include "../common.h"
#include "../driver.h"

#include <pthread.h>

enum { CALLS = 100, NUMBERS = 512 };

static const char KERNELS[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry add_constant(.param .u64 a, .param .u64 b, .param .u64 c)\n{\n    ret;\n}\n";

static context used;
static volatile int over;

static void ask(void) {
    size_t left, total;
    for (int i = 0; i < CALLS; i++) {
        char *piece = malloc(1 + (size_t)i * 37);
        DRIVER(cuMemGetInfo(&left, &total));
        piece[0] = (char)i;
        CHECK(left <= total && piece[0] == (char)i, "%zu bytes of %zu", left, total);
        free(piece);
    }
}

static void *beside(void *nothing) {
    DRIVER(cuCtxSetCurrent(used));
    while (!over) ask();
    return nothing;
}

static void add_up(void) {
    int sum = 0;
    for (int i = 0; i < CALLS; i++) MUST(MPI_Reduce_local(&i, &sum, 1, MPI_INT, MPI_SUM));
    CHECK(sum == CALLS * (CALLS - 1) / 2, "%d", sum);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    driver_open();
    DRIVER(cuInit(0));
    DRIVER(cuDevicePrimaryCtxRetain(&used, 0));
    DRIVER(cuCtxSetCurrent(used));
    module kernels;
    function add;
    device_pointer numbers;
    uint64_t there[NUMBERS] = {0}, count = NUMBERS, one = 1;
    DRIVER(cuModuleLoadData(&kernels, KERNELS));
    DRIVER(cuModuleGetFunction(&add, kernels, "add_constant"));
    DRIVER(cuMemAlloc(&numbers, sizeof there));
    DRIVER(cuMemcpyHtoD(numbers, there, sizeof there));
    pthread_t other;
    CHECK(pthread_create(&other, NULL, beside, NULL) == 0, "%s", "no thread");
    void *parameters[] = {&numbers, &count, &one};
    uint64_t rounds = 0;
    for (int go = 0; !go; rounds++) {
        add_up();
        DRIVER(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
        int mine = trial_go();
        uint64_t least;
        MUST(MPI_Allreduce(&mine, &go, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
        MUST(MPI_Allreduce(&rounds, &least, 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD));
        CHECK(least == rounds, "round %llu, and another rank's is %llu", (unsigned long long)rounds, (unsigned long long)least);
        if (rounds == 3) trial_ready();
    }
    over = 1;
    pthread_join(other, NULL);
    DRIVER(cuMemcpyDtoH(there, numbers, sizeof there));
    for (int i = 0; i < NUMBERS; i++) CHECK(there[i] == rounds, "number %d is %llu after %llu rounds", i, (unsigned long long)there[i], (unsigned long long)rounds);
    return trial_finish();
}
