/* trial: ranks=2 flags=-ldl
 * How programs come to the driver and go: `habits idle|late|reset|children|long`. Ranks count rounds together until they may go; each round is counted on the GPU too,
 * from the moment on that there is one.
 *
 * idle      the driver is begun with, and no device is ever used
 * late      the driver is opened when the program is told to (the file `open`)
 * reset     every 16 rounds the device is reset, and everything of it made anew
 * children  every 8 rounds a program is started, which ends before the next
 * long      each round has a kernel that takes a second
 */
#include "../common.h"
#include "../driver.h"

#include <spawn.h>
#include <sys/wait.h>

enum { NUMBERS = 1000, BYTES = NUMBERS * sizeof(uint64_t) };

static const char KERNELS[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry add_constant(.param .u64 a, .param .u64 b, .param .u64 c)\n{\n    ret;\n}\n"
    ".visible .entry spin(.param .u64 a)\n{\n    ret;\n}\n";

static function add, spin;
static device_pointer numbers;
static uint64_t host[NUMBERS];

static void take_device(void) {
    context used;
    module kernels;
    DRIVER(cuDevicePrimaryCtxRetain(&used, 0));
    DRIVER(cuCtxSetCurrent(used));
    DRIVER(cuModuleLoadData(&kernels, KERNELS));
    DRIVER(cuModuleGetFunction(&add, kernels, "add_constant"));
    DRIVER(cuModuleGetFunction(&spin, kernels, "spin"));
    DRIVER(cuMemAlloc(&numbers, BYTES));
    DRIVER(cuMemcpyHtoD(numbers, host, BYTES));
}

static void reset_device(void) {
    DRIVER(cuMemcpyDtoH(host, numbers, BYTES));
    DRIVER(cuDevicePrimaryCtxReset(0));
    /* It is held still, and made anew by who holds it once more. */
    DRIVER(cuDevicePrimaryCtxRelease(0));
    take_device();
}

static void start_child(void) {
    char *arguments[] = {"true", NULL};
    pid_t child;
    int status = -1;
    CHECK(posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ) == 0, "%s", "no child");
    CHECK(waitpid(child, &status, 0) == child && status == 0, "status %d", status);
}

static void count_up(void) {
    uint64_t count = NUMBERS, by = 1;
    void *parameters[] = {&numbers, &count, &by};
    DRIVER(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
}

static void compute_long(void) {
    uint64_t milliseconds = 1000;
    void *parameters[] = {&milliseconds};
    DRIVER(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
}

static int told(const char *what) {
    char path[PATH_MAX];
    trial_path(path, sizeof path, what);
    return access(path, F_OK) == 0;
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    const char *kind = argc > 1 ? argv[1] : "idle";
    int late = strcmp(kind, "late") == 0, idle = strcmp(kind, "idle") == 0, resets = strcmp(kind, "reset") == 0;
    int children = strcmp(kind, "children") == 0, is_long = strcmp(kind, "long") == 0;
    if (!late) {
        driver_open();
        DRIVER(cuInit(0));
        if (!idle) take_device();
    }
    uint64_t rounds = 0, counted = 0;
    for (int go = 0; !go; rounds++) {
        if (late && !numbers && told("open")) {
            driver_open();
            DRIVER(cuInit(0));
            take_device();
            trial_mark("opened");
        }
        if (numbers) count_up(), counted++;
        if (is_long) compute_long();
        if (resets && rounds % 16 == 0) reset_device();
        if (children && rounds % 8 == 0) start_child();
        if (is_long || rounds % 64 == 0) DRIVER(numbers ? cuCtxSynchronize() : 0);
        int mine = trial_go();
        MUST(MPI_Allreduce(&mine, &go, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
        if (rounds == 3) trial_ready();
    }
    if (idle) {
        int devices = 0;
        DRIVER(cuDeviceGetCount(&devices));
        CHECK(devices > 0, "%d devices", devices);
        take_device();
    }
    DRIVER(cuMemcpyDtoH(host, numbers, BYTES));
    for (int i = 0; i < NUMBERS; i++) CHECK(host[i] == counted, "%llu and not %llu", (unsigned long long)host[i], (unsigned long long)counted);
    return trial_finish();
}
