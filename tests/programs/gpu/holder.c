/* trial: ranks=1 flags=-ldl
 * A process with memory on every device, without MPI: `holder BYTES`. It adds to its numbers round after round, from a thread of
 * its own for each device, until it may go; then they have to be what they must be.
 */
#include "../common.h"
#include "../driver.h"

#include <pthread.h>

static const char KERNELS[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry fill_pattern(.param .u64 a, .param .u64 b, .param .u64 c)\n{\n    ret;\n}\n"
    ".visible .entry add_constant(.param .u64 a, .param .u64 b, .param .u64 c)\n{\n    ret;\n}\n"
    ".visible .entry follow_and_add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d)\n{\n    ret;\n}\n";

enum { ARRAYS = 3, MANAGED = 65536 };

static size_t bytes;
static unsigned long rounds[64];

/* Rounds that the device has said are over. */
static unsigned long told[64];

static void tell(void *argument) { (*(unsigned long *)argument)++; }

static void *hold(void *argument) {
    int device = (int)(intptr_t)argument;
    uint64_t count = bytes / 8 / ARRAYS, arrays_of = ARRAYS, one = 1;
    context used;
    DRIVER(cuDevicePrimaryCtxRetain(&used, device));
    DRIVER(cuCtxSetCurrent(used));
    module kernels;
    function fill, add, add_one;
    DRIVER(cuModuleLoadData(&kernels, KERNELS));
    DRIVER(cuModuleGetFunction(&fill, kernels, "fill_pattern"));
    DRIVER(cuModuleGetFunction(&add, kernels, "follow_and_add"));
    DRIVER(cuModuleGetFunction(&add_one, kernels, "add_constant"));
    stream in;
    event start, end;
    DRIVER(cuStreamCreate(&in, 1));
    DRIVER(cuEventCreate(&start, 0));
    DRIVER(cuEventCreate(&end, 0));
    device_pointer arrays[ARRAYS], table;
    for (uint64_t i = 0; i < ARRAYS; i++) {
        DRIVER(cuMemAlloc(&arrays[i], count * 8));
        uint64_t seed = i + 100 * (uint64_t)device;
        void *parameters[] = {&arrays[i], &count, &seed};
        DRIVER(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, in, parameters, NULL));
    }
    DRIVER(cuMemAlloc(&table, sizeof arrays));
    /* What the host reaches as well: rounds are counted there, by the host and by the device. */
    uint64_t *managed, of_managed = MANAGED / 8;
    DRIVER(cuMemAllocManaged((device_pointer *)&managed, MANAGED, 1));
    memset(managed, 0, MANAGED);
    uint64_t *pinned;
    DRIVER(cuMemHostAlloc((void **)&pinned, count * 8, 0));
    DRIVER(cuMemcpyHtoD(table, arrays, sizeof arrays));
    DRIVER(cuEventRecord(start, in));
    void *parameters[] = {&table, &arrays_of, &count, &one};
    do {
        DRIVER(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, in, parameters, NULL));
        void *all_managed[] = {&managed, &of_managed, &one};
        DRIVER(cuLaunchKernel(add_one, 1, 1, 1, 1, 1, 1, 0, in, all_managed, NULL));
        DRIVER(cuLaunchHostFunc(in, tell, &told[device]));
        DRIVER(cuEventRecord(end, in));
        DRIVER(cuEventSynchronize(end));
        rounds[device]++;
        CHECK(told[device] == rounds[device], "told of %lu rounds, and not %lu", told[device], rounds[device]);
        managed[0] += 1000;
        usleep(1000);
    } while (!trial_go());
    float milliseconds = -1;
    DRIVER(cuEventElapsedTime(&milliseconds, start, end));
    CHECK(milliseconds > 0, "%f ms", (double)milliseconds);
    for (uint64_t i = 0; i < ARRAYS; i++) {
        DRIVER(cuMemcpyDtoHAsync(pinned, arrays[i], count * 8, in));
        DRIVER(cuStreamSynchronize(in));
        for (uint64_t k = 0; k < count; k++) {
            uint64_t right = (i + 100 * (uint64_t)device + k) * 0x9e3779b97f4a7c15u + rounds[device];
            if (pinned[k] != right) {
                CHECK(0, "number %d of array %d on device %d", (int)k, (int)i, device);
                break;
            }
        }
        DRIVER(cuMemFree(arrays[i]));
    }
    for (uint64_t k = 0; k < of_managed; k++)
        CHECK(managed[k] == rounds[device] * (k == 0 ? 1001 : 1), "managed number %d", (int)k);
    DRIVER(cuMemFree((device_pointer)managed));
    return NULL;
}

int main(int argc, char **argv) {
    trial_rank = 0;
    bytes = argc > 1 ? (size_t)atoll(argv[1]) : 3 << 20;
    driver_open();
    DRIVER(cuInit(0));
    int count;
    DRIVER(cuDeviceGetCount(&count));
    pthread_t threads[64];
    for (int i = 0; i < count; i++) pthread_create(&threads[i], NULL, hold, (void *)(intptr_t)i);
    for (int i = 0; i < count; i++)
        while (__atomic_load_n(&rounds[i], __ATOMIC_ACQUIRE) < 3) usleep(1000);
    trial_ready();
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
    if (trial_failures) return 1;
    puts("OK 0");
    return 0;
}
