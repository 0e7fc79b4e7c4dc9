/* trial: ranks=2 flags=-ldl
 * What a driver may not carry: `uncarried name|descriptor|multicast`. Ranks count rounds together, on memory of their own and on such memory. When they are told to
 * (the file `destroy`), they compare it and give it back, and count on without it.
 *
 * name        memory of rank 0 that rank 1 has by a name, and counts on
 * descriptor  the same by a descriptor
 * multicast   memory of two devices behind one range of addresses: what is written there is in both
 */
#include "../common.h"
#include "../driver.h"

enum { NUMBERS = 1000, BYTES = NUMBERS * sizeof(uint64_t), GRANULE = 2 << 20, DEVICES = 2 };

static const char KERNELS[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry add_constant(.param .u64 a, .param .u64 b, .param .u64 c)\n{\n    ret;\n}\n";
static const struct device_access ALL[DEVICES] = {{1, 0, 3}, {1, 1, 3}};

static function add;
static uint64_t host[NUMBERS];

static void count_up(device_pointer numbers) {
    uint64_t count = NUMBERS, by = 1;
    void *parameters[] = {&numbers, &count, &by};
    DRIVER(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
}

static void expect(const char *what, device_pointer numbers, uint64_t right) {
    DRIVER(cuMemcpyDtoH(host, numbers, BYTES));
    for (int i = 0; i < NUMBERS; i++)
        if (host[i] != right) {
            CHECK(0, "%s: number %d is %llu, not %llu", what, i, (unsigned long long)host[i], (unsigned long long)right);
            return;
        }
}

static uint64_t make_memory(int device, int handles) {
    struct device_properties like = {.kind = 1, .handles = handles, .location = 1, .device = device};
    uint64_t made;
    DRIVER(cuMemCreate(&made, GRANULE, &like, 0));
    return made;
}

static device_pointer map(uint64_t made) {
    device_pointer address;
    DRIVER(cuMemAddressReserve(&address, GRANULE, 0, 0, 0));
    DRIVER(cuMemMap(address, GRANULE, 0, made, 0));
    DRIVER(cuMemSetAccess(address, GRANULE, ALL, DEVICES));
    return address;
}

static void unmap(device_pointer address) {
    DRIVER(cuMemUnmap(address, GRANULE));
    DRIVER(cuMemAddressFree(address, GRANULE));
}

/* Memory that both ranks have. */
static device_pointer shared, named;

static void share_by_name(void) {
    struct shared_name name;
    if (trial_rank == 0) {
        DRIVER(cuMemAlloc(&named, BYTES));
        DRIVER(cuMemsetD8(named, 0, BYTES));
        DRIVER(cuIpcGetMemHandle(&name, named));
    }
    MUST(MPI_Bcast(&name, sizeof name, MPI_BYTE, 0, MPI_COMM_WORLD));
    if (trial_rank == 1) DRIVER(cuIpcOpenMemHandle(&named, name, 1));
    shared = named;
}

/* The other rank takes the descriptor out of this one's process. */
static void share_by_descriptor(void) {
    struct { int process, descriptor; } from = {getpid(), -1};
    uint64_t made;
    if (trial_rank == 0) {
        made = make_memory(0, 1);
        DRIVER(cuMemExportToShareableHandle(&from.descriptor, made, 1, 0));
    }
    int own = from.descriptor;
    MUST(MPI_Bcast(&from, sizeof from, MPI_BYTE, 0, MPI_COMM_WORLD));
    if (trial_rank == 1) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/fd/%d", from.process, from.descriptor);
        own = open(path, O_RDONLY | O_CLOEXEC);
        CHECK(own >= 0, "%s: %s", path, strerror(errno));
        DRIVER(cuMemImportFromShareableHandle(&made, (void *)(intptr_t)own, 1));
    }
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    close(own);
    shared = map(made);
    DRIVER(cuMemRelease(made));
    if (trial_rank == 0) DRIVER(cuMemsetD8(shared, 0, BYTES));
    MUST(MPI_Barrier(MPI_COMM_WORLD));
}

/* Memory that is written to once for both devices. */
static device_pointer everywhere, each[DEVICES];
static uint64_t team;

static void make_team(void) {
    struct team_properties like = {.devices = DEVICES, .size = GRANULE};
    uint64_t made[DEVICES];
    DRIVER(cuMulticastCreate(&team, &like));
    for (int i = 0; i < DEVICES; i++) DRIVER(cuMulticastAddDevice(team, i));
    for (int i = 0; i < DEVICES; i++) {
        made[i] = make_memory(i, 0);
        DRIVER(cuMulticastBindMem(team, 0, made[i], 0, GRANULE, 0));
        each[i] = map(made[i]);
        DRIVER(cuMemRelease(made[i]));
    }
    everywhere = map(team);
}

static void compare_and_destroy(const char *kind, uint64_t rounds) {
    DRIVER(cuCtxSynchronize());
    if (shared) {
        MUST(MPI_Barrier(MPI_COMM_WORLD));
        expect(kind, shared, rounds);
        MUST(MPI_Barrier(MPI_COMM_WORLD));
        if (!named) unmap(shared);
        else if (trial_rank == 1) DRIVER(cuIpcCloseMemHandle(named));
        MUST(MPI_Barrier(MPI_COMM_WORLD));
        if (named && trial_rank == 0) DRIVER(cuMemFree(named));
        shared = 0;
    }
    if (everywhere) {
        for (int i = 0; i < DEVICES; i++) expect(kind, each[i], rounds);
        for (int i = 0; i < DEVICES; i++) DRIVER(cuMulticastUnbind(team, i, 0, GRANULE));
        unmap(everywhere);
        for (int i = 0; i < DEVICES; i++) unmap(each[i]);
        DRIVER(cuMemRelease(team));
        everywhere = 0;
    }
    trial_mark("destroyed");
}

static int told_to_destroy(void) {
    char path[PATH_MAX];
    trial_path(path, sizeof path, "destroy");
    return !getenv("TRIAL_DIR") || access(path, F_OK) == 0;
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    const char *kind = argc > 1 ? argv[1] : "name";
    driver_open();
    DRIVER(cuInit(0));
    context used;
    DRIVER(cuDevicePrimaryCtxRetain(&used, 0));
    DRIVER(cuCtxSetCurrent(used));
    module kernels;
    DRIVER(cuModuleLoadData(&kernels, KERNELS));
    DRIVER(cuModuleGetFunction(&add, kernels, "add_constant"));
    device_pointer own;
    DRIVER(cuMemAlloc(&own, BYTES));
    DRIVER(cuMemsetD8(own, 0, BYTES));

    if (strcmp(kind, "name") == 0) share_by_name();
    else if (strcmp(kind, "descriptor") == 0) share_by_descriptor();
    else make_team();

    uint64_t rounds = 0;
    for (int least[2] = {0, 0}; !least[0]; rounds++) {
        count_up(own);
        if (shared && trial_rank == 1) count_up(shared);
        if (everywhere) {
            for (int i = 0; i < NUMBERS; i++) host[i] = rounds + 1;
            DRIVER(cuMemcpyHtoD(everywhere, host, BYTES));
        }
        int mine[2] = {trial_go(), told_to_destroy()};
        MUST(MPI_Allreduce(mine, least, 2, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
        if (rounds == 3) trial_ready();
        if (least[1] && (shared || everywhere)) compare_and_destroy(kind, rounds + 1);
    }
    DRIVER(cuCtxSynchronize());
    expect("own", own, rounds);
    return trial_finish();
}
