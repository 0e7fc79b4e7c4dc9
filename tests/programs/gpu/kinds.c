/* trial: ranks=2 flags=-ldl
 * Kinds of memory and work: `kinds plain|managed|shared|mapped|graph`. Ranks count rounds together until they may go. Work of each round is under way when the
 * next one begins: kernels in two streams that wait for each other's events, functions of the host, copies to pinned and to registered memory.
 *
 * plain     device memory, pinned memory, memory that the program has registered
 * managed   memory that host and device reach, besides
 * shared    memory that rank 0 has given to rank 1 by name, besides
 * mapped    memory that is made and mapped in two steps, besides: at two addresses at once, which change, and some that has no address
 * graph     kernels and copies that are launched as a graph, besides
 */
#include "../common.h"
#include "../driver.h"

#include <string.h>

enum { NUMBERS = 1000, KERNELS_A_ROUND = 20 };

static const char KERNELS[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry add_constant(.param .u64 a, .param .u64 b, .param .u64 c)\n{\n    ret;\n}\n";

static function add;

static void count_up(device_pointer numbers, uint64_t by, stream in) {
    uint64_t count = NUMBERS;
    void *parameters[] = {&numbers, &count, &by};
    DRIVER(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, in, parameters, NULL));
}

/* Called by the driver. */
static void told(void *argument) { ++*(volatile uint64_t *)argument; }

static void expect(const char *what, const uint64_t *numbers, uint64_t right) {
    for (int i = 0; i < NUMBERS; i++)
        if (numbers[i] != right) {
            CHECK(0, "%s: number %d is %llu, not %llu", what, i, (unsigned long long)numbers[i], (unsigned long long)right);
            return;
        }
}

/* Memory of rank 0 that rank 1 writes to as well. */
static device_pointer share(device_pointer own) {
    struct shared_name name;
    device_pointer there = own;
    if (trial_rank == 0) DRIVER(cuIpcGetMemHandle(&name, own));
    MUST(MPI_Bcast(&name, sizeof name, MPI_BYTE, 0, MPI_COMM_WORLD));
    if (trial_rank == 1) DRIVER(cuIpcOpenMemHandle(&there, name, 1));
    return there;
}

/* Memory that is made and mapped. */
enum { GRANULE = 2 << 20 };
static const struct device_access ALL = {1, 0, 3};

static uint64_t make_memory(void) {
    struct device_properties on_device = {.kind = 1, .location = 1};
    uint64_t made;
    DRIVER(cuMemCreate(&made, GRANULE, &on_device, 0));
    return made;
}

static void map_at(device_pointer address, uint64_t made) {
    DRIVER(cuMemMap(address, GRANULE, 0, made, 0));
    DRIVER(cuMemSetAccess(address, GRANULE, &ALL, 1));
}

/* Kernels and a copy, written down once. */
static launchable written_down(stream in, device_pointer numbers, device_pointer copy) {
    graph written;
    launchable made;
    DRIVER(cuStreamBeginCapture(in, 0));
    for (int i = 0; i < KERNELS_A_ROUND; i++) count_up(numbers, 1, in);
    DRIVER(cuMemcpyDtoDAsync(copy, numbers, NUMBERS * sizeof(uint64_t), in));
    DRIVER(cuStreamEndCapture(in, &written));
    DRIVER(cuGraphInstantiateWithFlags(&made, written, 0));
    DRIVER(cuGraphDestroy(written));
    return made;
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    const char *kind = argc > 1 ? argv[1] : "plain";
    driver_open();
    DRIVER(cuInit(0));
    context used;
    DRIVER(cuDevicePrimaryCtxRetain(&used, 0));
    DRIVER(cuCtxSetCurrent(used));
    module kernels;
    DRIVER(cuModuleLoadData(&kernels, KERNELS));
    DRIVER(cuModuleGetFunction(&add, kernels, "add_constant"));
    stream first, second;
    DRIVER(cuStreamCreate(&first, 1));
    DRIVER(cuStreamCreate(&second, 1));
    event passed, ends[2];
    DRIVER(cuEventCreate(&passed, 2));
    DRIVER(cuEventCreate(&ends[0], 0));
    DRIVER(cuEventCreate(&ends[1], 0));

    size_t bytes = NUMBERS * sizeof(uint64_t);
    device_pointer device, common, managed = 0;
    DRIVER(cuMemAlloc(&device, bytes));
    DRIVER(cuMemAlloc(&common, bytes));
    DRIVER(cuMemsetD8(device, 0, bytes));
    DRIVER(cuMemsetD8(common, 0, bytes));
    uint64_t *pinned, *registered = aligned_alloc(4096, 8192);
    DRIVER(cuMemHostAlloc((void **)&pinned, bytes, 0));
    DRIVER(cuMemHostRegister(registered, 8192, 0));
    if (strcmp(kind, "managed") == 0) {
        DRIVER(cuMemAllocManaged(&managed, bytes, 1));
        memset((void *)(uintptr_t)managed, 0, bytes);
    }
    device_pointer there = strcmp(kind, "shared") == 0 ? share(common) : 0;

    int maps = strcmp(kind, "mapped") == 0;
    uint64_t made = 0, hidden = 0;
    device_pointer range = 0, spare = 0;
    if (maps) {
        made = make_memory(), hidden = make_memory();
        DRIVER(cuMemAddressReserve(&range, 4 * GRANULE, 0, 0, 0));
        /* Whose bytes nobody can reach while it counts. */
        map_at(range + 3 * GRANULE, hidden);
        DRIVER(cuMemsetD8(range + 3 * GRANULE, 0x5a, bytes));
        DRIVER(cuMemUnmap(range + 3 * GRANULE, GRANULE));
        map_at(range, made), map_at(range + 2 * GRANULE, made);
        DRIVER(cuMemsetD8(range, 0, bytes));
    }
    launchable launched = NULL;
    device_pointer copied = 0;
    if (strcmp(kind, "graph") == 0) {
        DRIVER(cuMemAlloc(&spare, bytes));
        DRIVER(cuMemAlloc(&copied, bytes));
        DRIVER(cuMemsetD8(spare, 0, bytes));
        launched = written_down(second, spare, copied);
    }

    volatile uint64_t calls = 0;
    uint64_t rounds = 0;
    for (int go = 0; !go; rounds++) {
        for (int i = 0; i < KERNELS_A_ROUND; i++) {
            count_up(device, 1, i % 2 ? first : second);
            DRIVER(cuEventRecord(passed, i % 2 ? first : second));
            DRIVER(cuStreamWaitEvent(i % 2 ? second : first, passed, 0));
        }
        if (managed) count_up(managed, 1, second);
        if (maps) count_up(range + rounds % 2 * 2 * GRANULE, 1, second);
        if (launched) DRIVER(cuGraphLaunch(launched, second));
        if (there && trial_rank == 1) count_up(there, 1, second);
        DRIVER(cuMemcpyDtoHAsync(pinned, device, bytes, second));
        DRIVER(cuMemcpyDtoHAsync(registered, device, bytes, second));
        DRIVER(cuLaunchHostFunc(second, told, (void *)(uintptr_t)&calls));
        DRIVER(cuEventRecord(ends[rounds % 2], second));
        int mine = trial_go();
        MUST(MPI_Allreduce(&mine, &go, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
        if (rounds > 0) DRIVER(cuEventSynchronize(ends[(rounds - 1) % 2]));
        if (rounds == 3) trial_ready();
        if (maps && rounds % 16 == 0) {
            /* Another address for what the work of this round still uses: once that is done. */
            DRIVER(cuCtxSynchronize());
            DRIVER(cuMemUnmap(range + 2 * GRANULE, GRANULE));
            map_at(range + 2 * GRANULE, made);
        }
    }
    DRIVER(cuCtxSynchronize());
    CHECK(calls == rounds, "%llu calls in %llu rounds", (unsigned long long)calls, (unsigned long long)rounds);
    uint64_t right = rounds * KERNELS_A_ROUND;
    expect("pinned", pinned, right);
    expect("registered", registered, right);
    if (managed) expect("managed", (const uint64_t *)(uintptr_t)managed, rounds);
    if (there) {
        if (trial_rank == 1) DRIVER(cuIpcCloseMemHandle(there));
        MUST(MPI_Barrier(MPI_COMM_WORLD));
        DRIVER(cuMemcpyDtoH(pinned, common, bytes));
        expect("shared", pinned, trial_rank == 0 ? rounds : 0);
    }
    if (maps) {
        DRIVER(cuMemcpyDtoH(pinned, range, bytes));
        expect("mapped", pinned, rounds);
        DRIVER(cuMemcpyDtoH(pinned, range + 2 * GRANULE, bytes));
        expect("mapped again", pinned, rounds);
        map_at(range + GRANULE, hidden);
        DRIVER(cuMemcpyDtoH(pinned, range + GRANULE, bytes));
        expect("without an address", pinned, 0x5a5a5a5a5a5a5a5a);
        DRIVER(cuMemUnmap(range, GRANULE));
        DRIVER(cuMemRelease(made));
    }
    if (launched) {
        DRIVER(cuMemcpyDtoH(pinned, copied, bytes));
        expect("graph", pinned, right);
        DRIVER(cuGraphExecDestroy(launched));
    }
    DRIVER(cuMemcpyDtoH(pinned, device, bytes));
    expect("device", pinned, right);
    DRIVER(cuMemHostUnregister(registered));
    return trial_finish();
}
