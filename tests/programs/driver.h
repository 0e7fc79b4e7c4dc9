/* The CUDA driver's functions, as far as the programs need them: found as a static CUDA runtime finds them, which is how most
 * programs come to a driver. The declarations follow the driver's documented interface. */
#ifndef TRIAL_DRIVER_H
#define TRIAL_DRIVER_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef uint64_t device_pointer;
struct shared_name { char bytes[64]; };
typedef struct context_ *context;
typedef struct stream_ *stream;
typedef struct event_ *event;
typedef struct module_ *module;
typedef struct function_ *function;
typedef struct graph_ *graph;
typedef struct launchable_ *launchable;
struct device_properties { int kind, handles, location, device; void *windows; unsigned char flags[8]; };
struct team_properties { unsigned devices; size_t size; unsigned long long handles, flags; };
struct device_access { int location, device, flags; };

/* Result type is an int throughout: 0 is success. */
#define DRIVER_FUNCTIONS(X) \
    X(cuInit, (unsigned flags)) \
    X(cuDriverGetVersion, (int *version)) \
    X(cuGetErrorName, (int error, const char **name)) \
    X(cuDeviceGet, (int *device, int ordinal)) \
    X(cuDeviceGetCount, (int *count)) \
    X(cuDeviceGetName, (char *name, int length, int device)) \
    X(cuDeviceGetUuid, (unsigned char *uuid, int device)) \
    X(cuDeviceCanAccessPeer, (int *can, int device, int peer)) \
    X(cuDeviceGetP2PAttribute, (int *value, int attribute, int device, int peer)) \
    X(cuDevicePrimaryCtxRetain, (context *made, int device)) \
    X(cuDevicePrimaryCtxRelease, (int device)) \
    X(cuDevicePrimaryCtxReset, (int device)) \
    X(cuCtxSetCurrent, (context used)) \
    X(cuCtxSynchronize, (void)) \
    X(cuMemGetInfo, (size_t *left, size_t *total)) \
    X(cuMemAlloc, (device_pointer *address, size_t size)) \
    X(cuMemFree, (device_pointer address)) \
    X(cuMemAllocManaged, (device_pointer *address, size_t size, unsigned flags)) \
    X(cuIpcGetMemHandle, (struct shared_name *name, device_pointer address)) \
    X(cuIpcOpenMemHandle, (device_pointer *address, struct shared_name name, unsigned flags)) \
    X(cuIpcCloseMemHandle, (device_pointer address)) \
    X(cuMemCreate, (uint64_t *made, size_t size, const struct device_properties *like, unsigned long long flags)) \
    X(cuMemRelease, (uint64_t made)) \
    X(cuMemExportToShareableHandle, (void *place, uint64_t made, int kind, unsigned long long flags)) \
    X(cuMemImportFromShareableHandle, (uint64_t *made, void *descriptor, int kind)) \
    X(cuMulticastCreate, (uint64_t *team, const struct team_properties *like)) \
    X(cuMulticastAddDevice, (uint64_t team, int device)) \
    X(cuMulticastBindMem, (uint64_t team, size_t offset, uint64_t made, size_t within, size_t size, unsigned long long flags)) \
    X(cuMulticastUnbind, (uint64_t team, int device, size_t offset, size_t size)) \
    X(cuMemAddressFree, (device_pointer address, size_t size)) \
    X(cuMemAddressReserve, (device_pointer *address, size_t size, size_t alignment, device_pointer hint, unsigned long long flags)) \
    X(cuMemMap, (device_pointer address, size_t size, size_t offset, uint64_t made, unsigned long long flags)) \
    X(cuMemSetAccess, (device_pointer address, size_t size, const struct device_access *access, size_t count)) \
    X(cuMemUnmap, (device_pointer address, size_t size)) \
    X(cuStreamBeginCapture, (stream in, int mode)) \
    X(cuStreamEndCapture, (stream in, graph *made)) \
    X(cuGraphInstantiateWithFlags, (launchable *made, graph from, unsigned long long flags)) \
    X(cuGraphLaunch, (launchable used, stream in)) \
    X(cuGraphDestroy, (graph used)) \
    X(cuGraphExecDestroy, (launchable used)) \
    X(cuMemAllocAsync, (device_pointer *address, size_t size, stream in)) \
    X(cuMemFreeAsync, (device_pointer address, stream in)) \
    X(cuMemHostAlloc, (void **address, size_t size, unsigned flags)) \
    X(cuMemFreeHost, (void *address)) \
    X(cuMemHostRegister, (void *address, size_t size, unsigned flags)) \
    X(cuMemHostUnregister, (void *address)) \
    X(cuMemcpyHtoD, (device_pointer to, const void *from, size_t size)) \
    X(cuMemcpyDtoH, (void *to, device_pointer from, size_t size)) \
    X(cuMemcpyDtoD, (device_pointer to, device_pointer from, size_t size)) \
    X(cuMemcpyHtoDAsync, (device_pointer to, const void *from, size_t size, stream in)) \
    X(cuMemcpyDtoHAsync, (void *to, device_pointer from, size_t size, stream in)) \
    X(cuMemcpyDtoDAsync, (device_pointer to, device_pointer from, size_t size, stream in)) \
    X(cuMemcpyPeerAsync, (device_pointer to, context there, device_pointer from, context here, size_t size, stream in)) \
    X(cuMemsetD8, (device_pointer to, unsigned char value, size_t count)) \
    X(cuMemsetD32Async, (device_pointer to, unsigned value, size_t count, stream in)) \
    X(cuPointerGetAttribute, (void *value, int attribute, device_pointer address)) \
    X(cuStreamCreate, (stream *made, unsigned flags)) \
    X(cuStreamDestroy, (stream used)) \
    X(cuStreamSynchronize, (stream used)) \
    X(cuStreamQuery, (stream used)) \
    X(cuStreamWaitEvent, (stream used, event waited, unsigned flags)) \
    X(cuLaunchHostFunc, (stream in, void (*called)(void *), void *with)) \
    X(cuEventCreate, (event *made, unsigned flags)) \
    X(cuEventDestroy, (event used)) \
    X(cuEventRecord, (event used, stream in)) \
    X(cuEventSynchronize, (event used)) \
    X(cuEventQuery, (event used)) \
    X(cuEventElapsedTime, (float *milliseconds, event start, event end)) \
    X(cuModuleLoadData, (module *made, const void *image)) \
    X(cuModuleUnload, (module used)) \
    X(cuModuleGetFunction, (function *found, module from, const char *name)) \
    X(cuLaunchKernel, (function kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, \
                       unsigned shared, stream in, void **parameters, void **extra))

#define DRIVER_DECLARE(name, parameters) static int (*name) parameters;
DRIVER_FUNCTIONS(DRIVER_DECLARE)

/* The version of the interface that the programs are written for: 12.8. */
enum { DRIVER_VERSION = 12080 };

static int driver_missing = 0;

static inline void *driver_find(int (*look)(const char *, void **, int, uint64_t, int *), const char *name) {
    void *found = NULL;
    int status = -1;
    if (look(name, &found, DRIVER_VERSION, 0, &status) != 0 || !found) {
        fprintf(stderr, "the driver has no %s (status %d)\n", name, status);
        driver_missing++;
    }
    return found;
}

/* Opens the driver and finds its functions. Without a driver the program ends. */
static inline void driver_open(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "no CUDA driver: %s\n", dlerror());
        exit(1);
    }
    int (*look)(const char *, void **, int, uint64_t, int *);
    *(void **)&look = dlsym(library, "cuGetProcAddress_v2");
    if (!look) {
        fprintf(stderr, "no cuGetProcAddress_v2: %s\n", dlerror());
        exit(1);
    }
#define DRIVER_FIND(name, parameters) *(void **)&name = driver_find(look, #name);
    DRIVER_FUNCTIONS(DRIVER_FIND)
    if (driver_missing) exit(1);
}

/* Ends the program where a call of the driver fails: nothing that follows would be right. */
#define DRIVER(call) \
    do { \
        int driver_result = (call); \
        if (driver_result != 0) driver_failed(__FILE__, __LINE__, #call, driver_result); \
    } while (0)

static inline void driver_failed(const char *file, int line, const char *call, int result) {
    const char *name = "?";
    if (cuGetErrorName) cuGetErrorName(result, &name);
    fprintf(stderr, "WRONG %s:%d: %s: %s (%d)\n", file, line, call, name ? name : "?", result);
    fflush(stderr);
    abort();
}

#endif
