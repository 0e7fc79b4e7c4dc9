/* trial: ranks=1 flags=-ldl
 * Another process that checkpoints one: `checkpointer PID COMMAND...`. Prints what comes of each command, until one goes wrong:
 *   state          the process's state
 *   thread         the name of the thread that a restore needs
 *   lock=MS        waits so long at the most; 0 for ever
 *   checkpoint     to the process's host memory
 *   restore        from there
 *   swap           the same, devices 0 and 1 exchanged
 *   save=FILE      with custom storage: the memory goes to a file
 *   load=FILE      and comes back from there
 *   unlock
 *   free=DEVICE    free memory of a device
 */
#include "../common.h"
#include "../driver.h"

struct per_device {
    device_pointer address;
    size_t size;
    stream in;
};

struct information {
    uint64_t handle;
    struct per_device *devices;
    unsigned count;
};

struct pair {
    unsigned char before[16], now[16];
};

struct restore {
    struct pair *pairs;
    unsigned count, padding;
    struct information **custom;
    char reserved[40];
};

struct checkpoint {
    struct information **custom;
    char reserved[56];
};

static int (*get_state)(int, int *), (*get_thread)(int, int *), (*lock)(int, unsigned *), (*checkpoint)(int, struct checkpoint *),
    (*restore)(int, struct restore *), (*unlock)(int, uint64_t *), (*complete)(uint64_t);

/* Copies what was lent to a file, or from there: device by device. */
static int through(const char *path, struct information *lent, int saves) {
    FILE *file = fopen(path, saves ? "wb" : "rb");
    if (!file) return -1;
    for (unsigned i = 0; i < lent->count; i++) {
        struct per_device *device = &lent->devices[i];
        void *pinned;
        context used;
        int ordinal = -1;
        DRIVER(cuPointerGetAttribute(&ordinal, 9, device->address));
        DRIVER(cuDevicePrimaryCtxRetain(&used, ordinal));
        DRIVER(cuCtxSetCurrent(used));
        DRIVER(cuMemHostAlloc(&pinned, device->size, 0));
        if (saves) {
            DRIVER(cuMemcpyDtoHAsync(pinned, device->address, device->size, device->in));
            DRIVER(cuStreamSynchronize(device->in));
            if (fwrite(pinned, 1, device->size, file) != device->size) return -1;
        } else {
            if (fread(pinned, 1, device->size, file) != device->size) return -1;
            DRIVER(cuMemcpyHtoDAsync(device->address, pinned, device->size, device->in));
            DRIVER(cuStreamSynchronize(device->in));
        }
        DRIVER(cuMemFreeHost(pinned));
        printf("device %d: %zu bytes\n", ordinal, device->size);
    }
    fclose(file);
    return complete(lent->handle);
}

static int obey(int pid, char *command) {
    char *value = strchr(command, '=');
    if (value) *value++ = 0;
    if (!strcmp(command, "state")) {
        int state = -1, result = get_state(pid, &state);
        printf("state is %d\n", state);
        return result;
    }
    if (!strcmp(command, "thread")) {
        int thread = -1, result = get_thread(pid, &thread);
        char path[64], name[32] = "?";
        snprintf(path, sizeof path, "/proc/%d/task/%d/comm", pid, thread);
        FILE *file = fopen(path, "r");
        if (file && fgets(name, sizeof name, file)) name[strcspn(name, "\n")] = 0;
        if (file) fclose(file);
        /* The rest of its name is a number. */
        name[4] = 0;
        printf("thread is %s\n", name);
        return result;
    }
    if (!strcmp(command, "lock")) {
        unsigned arguments[16] = {value ? (unsigned)atoi(value) : 0};
        return lock(pid, arguments);
    }
    if (!strcmp(command, "checkpoint")) return checkpoint(pid, NULL);
    if (!strcmp(command, "unlock")) return unlock(pid, NULL);
    if (!strcmp(command, "restore")) return restore(pid, NULL);
    if (!strcmp(command, "swap")) {
        struct pair pairs[2];
        for (int i = 0; i < 2; i++) {
            DRIVER(cuDeviceGetUuid(pairs[i].before, i));
            DRIVER(cuDeviceGetUuid(pairs[1 - i].now, i));
        }
        struct restore arguments = {.pairs = pairs, .count = 2};
        return restore(pid, &arguments);
    }
    if (!strcmp(command, "save") && value) {
        struct information *lent = NULL;
        struct checkpoint arguments = {.custom = &lent};
        int result = checkpoint(pid, &arguments);
        return result ? result : through(value, lent, 1);
    }
    if (!strcmp(command, "load") && value) {
        struct information *lent = NULL;
        struct restore arguments = {.custom = &lent};
        int result = restore(pid, &arguments);
        return result ? result : through(value, lent, 0);
    }
    if (!strcmp(command, "free") && value) {
        size_t left, total;
        context used;
        DRIVER(cuDevicePrimaryCtxRetain(&used, atoi(value)));
        DRIVER(cuCtxSetCurrent(used));
        DRIVER(cuMemGetInfo(&left, &total));
        printf("free are %zu\n", left);
        return 0;
    }
    fprintf(stderr, "what is %s?\n", command);
    return -1;
}

int main(int argc, char **argv) {
    trial_rank = 0;
    driver_open();
    DRIVER(cuInit(0));
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    *(void **)&get_state = dlsym(library, "cuCheckpointProcessGetState");
    *(void **)&get_thread = dlsym(library, "cuCheckpointProcessGetRestoreThreadId");
    *(void **)&lock = dlsym(library, "cuCheckpointProcessLock");
    *(void **)&checkpoint = dlsym(library, "cuCheckpointProcessCheckpoint");
    *(void **)&restore = dlsym(library, "cuCheckpointProcessRestore");
    *(void **)&unlock = dlsym(library, "cuCheckpointProcessUnlock");
    *(void **)&complete = dlsym(library, "cuCheckpointOperationComplete");
    for (int i = 2; i < argc; i++) {
        int result = obey(atoi(argv[1]), argv[i]);
        const char *name = "?";
        cuGetErrorName(result, &name);
        printf("%s: %s\n", argv[i], name ? name : "?");
        fflush(stdout);
        if (result) return 1;
    }
    return 0;
}
