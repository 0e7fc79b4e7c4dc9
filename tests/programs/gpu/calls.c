/* trial: ranks=1 flags=-ldl
 * What the driver answers, call by call, without MPI. Two devices at the least, of 100 MiB or more each.
 */
#include "../common.h"
#include "../driver.h"

enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_DEVICE = 101, NO_BINARY = 209, INVALID_PTX = 218, INVALID_HANDLE = 400,
       NOT_FOUND = 500, NOT_READY = 600, ILLEGAL_ADDRESS = 700, NOT_REGISTERED = 713 };

static const char KERNELS[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry fill_pattern(.param .u64 a, .param .u64 b, .param .u64 c)\n{\n    ret;\n}\n"
    ".visible .entry add_constant(.param .u64 a, .param .u64 b, .param .u64 c)\n{\n    ret;\n}\n"
    ".visible .entry follow_and_add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d)\n{\n    ret;\n}\n"
    ".visible .entry spin(.param .u64 a)\n{\n    ret;\n}\n";

#define GIVES(result, call) \
    do { \
        int given = (call); \
        CHECK(given == (result), "%d and not %d", given, (int)(result)); \
    } while (0)

static module kernels;
static function fill_pattern, add_constant, follow_and_add, spin;

static uint64_t pattern(uint64_t index, uint64_t seed) { return (seed + index) * 0x9e3779b97f4a7c15u; }

static void launch(function kernel, stream in, void **parameters) {
    DRIVER(cuLaunchKernel(kernel, 4, 1, 1, 64, 1, 1, 0, in, parameters, NULL));
}

static void fill(device_pointer at, uint64_t count, uint64_t seed, stream in) {
    void *parameters[] = {&at, &count, &seed};
    launch(fill_pattern, in, parameters);
}

static void add(device_pointer at, uint64_t count, uint64_t constant, stream in) {
    void *parameters[] = {&at, &count, &constant};
    launch(add_constant, in, parameters);
}

static void rest(uint64_t milliseconds, stream in) {
    void *parameters[] = {&milliseconds};
    launch(spin, in, parameters);
}

/* The first number that differs from the pattern and a constant; -1 where none does. */
static long differs(const uint64_t *numbers, uint64_t count, uint64_t seed, uint64_t constant) {
    for (uint64_t i = 0; i < count; i++)
        if (numbers[i] != pattern(i, seed) + constant) return (long)i;
    return -1;
}

static void devices(int count) {
    unsigned char one[16], other[16];
    char name[64];
    DRIVER(cuDeviceGetUuid(one, 0));
    DRIVER(cuDeviceGetUuid(other, 1));
    CHECK(memcmp(one, other, 16) != 0, "%s", "two devices have one identity");
    DRIVER(cuDeviceGetName(name, sizeof name, 0));
    CHECK(strlen(name) > 0, "%s", "a device without a name");
    GIVES(INVALID_DEVICE, cuDeviceGetName(name, sizeof name, count));
    int device;
    GIVES(INVALID_DEVICE, cuDeviceGet(&device, -1));
}

static void memory(void) {
    size_t before, between, after, total;
    device_pointer one, other;
    DRIVER(cuMemGetInfo(&before, &total));
    DRIVER(cuMemAlloc(&one, 1 << 20));
    DRIVER(cuMemGetInfo(&between, &total));
    CHECK(before - between == 1 << 20, "%zu bytes less", before - between);
    GIVES(OUT_OF_MEMORY, cuMemAlloc(&other, total));
    GIVES(INVALID_VALUE, cuMemAlloc(&other, 0));
    GIVES(INVALID_VALUE, cuMemFree(one + 512));
    DRIVER(cuMemFree(one));
    GIVES(INVALID_VALUE, cuMemFree(one));
    DRIVER(cuMemFree(0));
    DRIVER(cuMemGetInfo(&after, &total));
    CHECK(before == after, "%zu bytes are not free again", before - after);
}

static void copies(void) {
    enum { COUNT = 300000 };
    size_t size = COUNT * sizeof(uint64_t);
    uint64_t *pageable = malloc(size), *registered = NULL, *pinned;
    CHECK(posix_memalign((void **)&registered, 4096, size) == 0, "%s", "no memory");
    DRIVER(cuMemHostAlloc((void **)&pinned, size, 0));
    DRIVER(cuMemHostRegister(registered, size, 0));
    device_pointer one, other;
    DRIVER(cuMemAlloc(&one, size));
    DRIVER(cuMemAlloc(&other, size));
    stream in;
    DRIVER(cuStreamCreate(&in, 1));
    uint64_t *hosts[] = {pageable, registered, pinned};
    for (uint64_t i = 0; i < 3; i++) {
        for (uint64_t k = 0; k < COUNT; k++) hosts[i][k] = pattern(k, i);
        DRIVER(cuMemcpyHtoDAsync(one, hosts[i], size, in));
        DRIVER(cuMemcpyDtoDAsync(other, one, size, in));
        add(other, COUNT, 5, in);
        memset(i == 0 ? hosts[i] : pageable, 1, size); /* Pageable memory is the program's own again at once. */
        DRIVER(cuMemcpyDtoHAsync(hosts[i], other, size, in));
        DRIVER(cuStreamSynchronize(in));
        CHECK(differs(hosts[i], COUNT, i, 5) < 0, "number %ld by memory %d", differs(hosts[i], COUNT, i, 5), (int)i);
    }
    DRIVER(cuMemsetD8(one, 0x5a, size));
    DRIVER(cuMemsetD32Async(one + 8, 0x12345678, 2, 0));
    DRIVER(cuMemcpyDtoH(pinned, one, 24));
    CHECK(pinned[0] == 0x5a5a5a5a5a5a5a5au && pinned[1] == 0x1234567812345678u && pinned[2] == pinned[0], "%llx %llx",
          (unsigned long long)pinned[0], (unsigned long long)pinned[1]);
    DRIVER(cuStreamDestroy(in));
    DRIVER(cuMemHostUnregister(registered));
    GIVES(NOT_REGISTERED, cuMemHostUnregister(registered));
    DRIVER(cuMemFreeHost(pinned));
    DRIVER(cuMemFree(one));
    DRIVER(cuMemFree(other));
    free(pageable);
    free(registered);
}

static void note(void *argument) {
    uint64_t *noted = argument;
    noted[1] = noted[0];
    usleep(20000);
}

/* A function of the host is called when its stream comes to it, and the stream waits for it. */
static void called(void) {
    stream in;
    device_pointer memory;
    uint64_t *pinned;
    DRIVER(cuStreamCreate(&in, 1));
    DRIVER(cuMemAlloc(&memory, 16));
    DRIVER(cuMemHostAlloc((void **)&pinned, 16, 0));
    pinned[0] = pinned[1] = 0;
    fill(memory, 2, 4, in);
    rest(50, in);
    DRIVER(cuMemcpyDtoHAsync(pinned, memory, 8, in));
    DRIVER(cuLaunchHostFunc(in, note, pinned));
    GIVES(NOT_READY, cuStreamQuery(in));
    DRIVER(cuMemcpyHtoDAsync(memory, pinned + 1, 8, in));
    DRIVER(cuMemcpyDtoHAsync(pinned, memory, 8, in));
    DRIVER(cuStreamSynchronize(in));
    CHECK(pinned[1] == pattern(0, 4) && pinned[0] == pinned[1], "%llx", (unsigned long long)pinned[1]);
    GIVES(INVALID_VALUE, cuLaunchHostFunc(in, NULL, pinned));
    DRIVER(cuMemFreeHost(pinned));
    DRIVER(cuMemFree(memory));
    DRIVER(cuStreamDestroy(in));
}

/* Work of one stream is in order, and of two streams only by events. */
static void streams(void) {
    enum { COUNT = 1000 };
    stream one, other;
    event first, second;
    device_pointer numbers;
    uint64_t host[COUNT];
    DRIVER(cuStreamCreate(&one, 1));
    DRIVER(cuStreamCreate(&other, 1));
    DRIVER(cuEventCreate(&first, 0));
    DRIVER(cuEventCreate(&second, 0));
    DRIVER(cuMemAlloc(&numbers, sizeof host));
    DRIVER(cuEventQuery(first)); /* Never recorded: nothing to wait for. */
    DRIVER(cuEventRecord(first, one));
    rest(150, one);
    fill(numbers, COUNT, 7, one);
    DRIVER(cuEventRecord(second, one));
    GIVES(NOT_READY, cuStreamQuery(one));
    GIVES(NOT_READY, cuEventQuery(second));
    DRIVER(cuStreamQuery(other));
    DRIVER(cuStreamWaitEvent(other, second, 0));
    add(numbers, COUNT, 1, other);
    GIVES(NOT_READY, cuStreamQuery(other));
    DRIVER(cuStreamSynchronize(other));
    DRIVER(cuStreamQuery(one));
    DRIVER(cuEventSynchronize(second));
    float milliseconds;
    DRIVER(cuEventElapsedTime(&milliseconds, first, second));
    CHECK(milliseconds >= 150, "%f ms for a kernel of 150", (double)milliseconds);
    DRIVER(cuMemcpyDtoH(host, numbers, sizeof host));
    CHECK(differs(host, COUNT, 7, 1) < 0, "number %ld", differs(host, COUNT, 7, 1));

    /* The default stream waits for streams that are no others' business, and they for it. */
    stream blocking;
    DRIVER(cuStreamCreate(&blocking, 0));
    rest(100, blocking);
    fill(numbers, COUNT, 8, blocking);
    add(numbers, COUNT, 2, 0);
    add(numbers, COUNT, 3, blocking);
    DRIVER(cuStreamSynchronize(blocking));
    DRIVER(cuMemcpyDtoH(host, numbers, sizeof host));
    CHECK(differs(host, COUNT, 8, 5) < 0, "number %ld", differs(host, COUNT, 8, 5));
    DRIVER(cuStreamDestroy(blocking));
    GIVES(INVALID_HANDLE, cuStreamSynchronize(blocking));

    /* Memory in a stream's order. */
    device_pointer early, late;
    DRIVER(cuMemAllocAsync(&early, 1 << 20, one));
    rest(50, one);
    DRIVER(cuMemFreeAsync(early, one));
    DRIVER(cuMemAllocAsync(&late, 1 << 20, one));
    CHECK(early != late, "%s", "memory is given out before it is free");
    DRIVER(cuMemFreeAsync(late, one));
    DRIVER(cuStreamSynchronize(one));
    DRIVER(cuMemFree(numbers));
    DRIVER(cuEventDestroy(first));
    DRIVER(cuEventDestroy(second));
    DRIVER(cuStreamDestroy(one));
    DRIVER(cuStreamDestroy(other));
}

static void kernels_and_pointers(context here) {
    enum { COUNT = 100 };
    module wrong;
    function none;
    GIVES(NOT_FOUND, cuModuleGetFunction(&none, kernels, "no_such"));
    GIVES(INVALID_PTX, cuModuleLoadData(&wrong, "int main() {}"));
    GIVES(NO_BINARY, cuModuleLoadData(&wrong, "\x7f" "ELF"));
    device_pointer arrays[2], table;
    for (uint64_t i = 0; i < 2; i++) {
        DRIVER(cuMemAlloc(&arrays[i], COUNT * 8));
        fill(arrays[i], COUNT, i, 0);
    }
    DRIVER(cuMemAlloc(&table, sizeof arrays));
    DRIVER(cuMemcpyHtoD(table, arrays, sizeof arrays));
    /* Parameters in one buffer, and one by one. */
    uint64_t buffer[] = {table, 2, COUNT, 9};
    size_t size = sizeof buffer;
    void *extra[] = {(void *)1, buffer, (void *)2, &size, NULL};
    DRIVER(cuLaunchKernel(follow_and_add, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
    void *parameters[] = {&buffer[0], &buffer[1], &buffer[2], &buffer[3]};
    launch(follow_and_add, NULL, parameters);
    for (uint64_t i = 0; i < 2; i++) {
        uint64_t host[COUNT];
        DRIVER(cuMemcpyDtoH(host, arrays[i], sizeof host));
        CHECK(differs(host, COUNT, i, 18) < 0, "number %ld of array %d", differs(host, COUNT, i, 18), (int)i);
    }

    context of = NULL;
    unsigned kind = 0;
    int ordinal = -1, on_stack;
    device_pointer start = 0;
    size_t length = 0;
    DRIVER(cuPointerGetAttribute(&of, 1, arrays[1] + 16));
    DRIVER(cuPointerGetAttribute(&kind, 2, arrays[1] + 16));
    DRIVER(cuPointerGetAttribute(&ordinal, 9, arrays[1] + 16));
    DRIVER(cuPointerGetAttribute(&start, 11, arrays[1] + 16));
    DRIVER(cuPointerGetAttribute(&length, 12, arrays[1] + 16));
    CHECK(of == here && kind == 2 && ordinal == 0 && start == arrays[1] && length == COUNT * 8, "kind %u, device %d", kind, ordinal);
    GIVES(INVALID_VALUE, cuPointerGetAttribute(&kind, 2, (device_pointer)(uintptr_t)&on_stack));
    void *pinned;
    DRIVER(cuMemHostAlloc(&pinned, 100, 0));
    DRIVER(cuPointerGetAttribute(&kind, 2, (device_pointer)(uintptr_t)pinned));
    CHECK(kind == 1, "pinned memory of kind %u", kind);
    DRIVER(cuMemFreeHost(pinned));
    for (int i = 0; i < 2; i++) DRIVER(cuMemFree(arrays[i]));
    DRIVER(cuMemFree(table));
}

static void peers(context here) {
    enum { COUNT = 200000 };
    int can = 0, access = 0;
    context there;
    device_pointer near, far, back;
    uint64_t *host = malloc(COUNT * 8);
    DRIVER(cuDeviceCanAccessPeer(&can, 0, 1));
    DRIVER(cuDeviceGetP2PAttribute(&access, 2, 0, 1));
    CHECK(can == access, "%d and %d", can, access);
    DRIVER(cuMemAlloc(&near, COUNT * 8));
    DRIVER(cuMemAlloc(&back, COUNT * 8));
    DRIVER(cuDevicePrimaryCtxRetain(&there, 1));
    DRIVER(cuCtxSetCurrent(there));
    DRIVER(cuMemAlloc(&far, COUNT * 8));
    DRIVER(cuCtxSetCurrent(here));
    fill(near, COUNT, 3, NULL);
    DRIVER(cuMemcpyPeerAsync(far, there, near, here, COUNT * 8, NULL));
    DRIVER(cuMemcpyDtoD(back, far, COUNT * 8));
    DRIVER(cuMemcpyDtoH(host, back, COUNT * 8));
    CHECK(differs(host, COUNT, 3, 0) < 0, "number %ld", differs(host, COUNT, 3, 0));
    DRIVER(cuMemFree(near));
    DRIVER(cuMemFree(back));
    DRIVER(cuMemFree(far));
    DRIVER(cuDevicePrimaryCtxRelease(1));
    free(host);
}

/* Memory of both: the host writes, the device adds, the host reads; and copies take it for what it is. */
static void managed(void) {
    enum { COUNT = 3000 };
    uint64_t *numbers, host[COUNT];
    int is = -1;
    unsigned kind = 0;
    size_t before, after, total;
    DRIVER(cuMemGetInfo(&before, &total));
    DRIVER(cuMemAllocManaged((device_pointer *)&numbers, sizeof host, 1));
    DRIVER(cuPointerGetAttribute(&is, 8, (device_pointer)numbers + 8));
    DRIVER(cuPointerGetAttribute(&kind, 2, (device_pointer)numbers + 8));
    CHECK(is == 1 && kind == 2, "managed %d, kind %u", is, kind);
    for (uint64_t i = 0; i < COUNT; i++) numbers[i] = pattern(i, 2);
    add((device_pointer)numbers, COUNT, 6, NULL);
    DRIVER(cuCtxSynchronize());
    CHECK(differs(numbers, COUNT, 2, 6) < 0, "number %ld", differs(numbers, COUNT, 2, 6));
    numbers[7]++;
    DRIVER(cuMemcpyDtoH(host, (device_pointer)numbers, sizeof host));
    CHECK(differs(host, COUNT, 2, 6) == 7, "number %ld", differs(host, COUNT, 2, 6));
    DRIVER(cuMemFree((device_pointer)numbers));
    DRIVER(cuMemGetInfo(&after, &total));
    CHECK(before == after, "%zu bytes are not free again", before - after);
}

/* An error of work that was taken on stays: the context is spoilt. */
/* Memory that is made and mapped in two steps. */
static void mapped(void) {
    enum { GRANULE = 2 << 20 };
    struct device_properties like = {.kind = 1, .location = 1};
    struct device_access all = {1, 0, 3};
    size_t before, after, total;
    uint64_t made, value = 7;
    device_pointer range;
    DRIVER(cuMemGetInfo(&before, &total));
    GIVES(1, cuMemCreate(&made, 1000, &like, 0));
    DRIVER(cuMemCreate(&made, GRANULE, &like, 0));
    DRIVER(cuMemAddressReserve(&range, 2 * GRANULE, 0, 0, 0));
    GIVES(1, cuMemMap(range + 2 * GRANULE, GRANULE, 0, made, 0));
    GIVES(1, cuMemSetAccess(range, GRANULE, &all, 1));
    DRIVER(cuMemMap(range, GRANULE, 0, made, 0));
    GIVES(1, cuMemMap(range, GRANULE, 0, made, 0));
    DRIVER(cuMemMap(range + GRANULE, GRANULE, 0, made, 0));
    DRIVER(cuMemSetAccess(range, 2 * GRANULE, &all, 1));
    DRIVER(cuMemcpyHtoD(range + 8, &value, sizeof value));
    value = 0;
    DRIVER(cuMemcpyDtoH(&value, range + GRANULE + 8, sizeof value));
    CHECK(value == 7, "%llu at the other address", (unsigned long long)value);
    DRIVER(cuMemGetInfo(&after, &total));
    CHECK(before - after == GRANULE, "%zu used for one that has two addresses", before - after);
    GIVES(1, cuMemFree(range));
    DRIVER(cuMemRelease(made));
    DRIVER(cuMemUnmap(range, GRANULE));
    DRIVER(cuMemcpyDtoH(&value, range + GRANULE + 8, sizeof value));
    CHECK(value == 7, "%llu after the other address went", (unsigned long long)value);
    DRIVER(cuMemUnmap(range + GRANULE, GRANULE));
    GIVES(1, cuMemUnmap(range, GRANULE));
    DRIVER(cuMemGetInfo(&after, &total));
    CHECK(before == after, "%zu left over", before - after);
}

static void illegal(void) {
    device_pointer numbers;
    DRIVER(cuMemAlloc(&numbers, 512));
    fill(numbers, 1000, 1, NULL);
    GIVES(ILLEGAL_ADDRESS, cuCtxSynchronize());
    GIVES(ILLEGAL_ADDRESS, cuMemAlloc(&numbers, 512));
    const char *name = NULL;
    DRIVER(cuGetErrorName(ILLEGAL_ADDRESS, &name));
    CHECK(name && strcmp(name, "CUDA_ERROR_ILLEGAL_ADDRESS") == 0, "%s", name ? name : "no name");
    GIVES(INVALID_VALUE, cuGetErrorName(12345, &name));
}

int main(void) {
    trial_rank = 0;
    driver_open();
    int count = 0, (*look)(const char *, void **, int, uint64_t, int *) = NULL, status = -1;
    GIVES(3, cuDeviceGetCount(&count));
    GIVES(INVALID_VALUE, cuInit(1));
    DRIVER(cuInit(0));
    DRIVER(cuDeviceGetCount(&count));
    CHECK(count >= 2, "%d devices", count);
    *(void **)&look = dlsym(RTLD_DEFAULT, "cuGetProcAddress_v2");
    if (!look) *(void **)&look = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuGetProcAddress_v2");
    void *found = &count;
    GIVES(0, look("cuNoSuchFunction", &found, DRIVER_VERSION, 0, &status));
    CHECK(found == NULL && status == 1, "%p, status %d", found, status);
    GIVES(0, look("cuMemAlloc", &found, 2000, 0, &status));
    CHECK(found == NULL && status == 2, "%p, status %d", found, status);
    CHECK(dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuTexObjectCreate") == NULL, "%s", "a function that is not there");

    context here;
    device_pointer without;
    GIVES(201, cuMemAlloc(&without, 512));
    DRIVER(cuDevicePrimaryCtxRetain(&here, 0));
    DRIVER(cuCtxSetCurrent(here));
    DRIVER(cuModuleLoadData(&kernels, KERNELS));
    DRIVER(cuModuleGetFunction(&fill_pattern, kernels, "fill_pattern"));
    DRIVER(cuModuleGetFunction(&add_constant, kernels, "add_constant"));
    DRIVER(cuModuleGetFunction(&follow_and_add, kernels, "follow_and_add"));
    DRIVER(cuModuleGetFunction(&spin, kernels, "spin"));
    devices(count);
    memory();
    copies();
    streams();
    called();
    kernels_and_pointers(here);
    peers(here);
    managed();
    mapped();
    illegal();
    if (trial_failures) return 1;
    puts("OK 0");
    return 0;
}
