/* trial: ranks=1 flags=-ldl
 * Copies over every link of three devices, without MPI: `traffic BYTES`. From the host to device 0 by two streams at once; from there
 * to the others; and from all of them to the host, where everything has to be the same.
 */
#include "../common.h"
#include "../driver.h"

int main(int argc, char **argv) {
    trial_rank = 0;
    size_t bytes = argc > 1 ? (size_t)atoll(argv[1]) : 1 << 20;
    driver_open();
    DRIVER(cuInit(0));
    context contexts[3];
    device_pointer memory[3], second;
    unsigned char *sent, *got;
    stream streams[2];
    for (int i = 2; i >= 0; i--) {
        DRIVER(cuDevicePrimaryCtxRetain(&contexts[i], i));
        DRIVER(cuCtxSetCurrent(contexts[i]));
        DRIVER(cuMemAlloc(&memory[i], bytes));
    }
    DRIVER(cuMemAlloc(&second, bytes));
    DRIVER(cuMemHostAlloc((void **)&sent, bytes, 0));
    DRIVER(cuMemHostAlloc((void **)&got, bytes, 0));
    trial_fill(sent, bytes, 11);
    for (int i = 0; i < 2; i++) DRIVER(cuStreamCreate(&streams[i], 1));
    DRIVER(cuMemcpyHtoDAsync(memory[0], sent, bytes, streams[0]));
    DRIVER(cuMemcpyHtoDAsync(second, sent, bytes, streams[1]));
    DRIVER(cuCtxSynchronize());
    for (int i = 1; i < 3; i++) DRIVER(cuMemcpyPeerAsync(memory[i], contexts[i], memory[0], contexts[0], bytes, streams[0]));
    DRIVER(cuStreamSynchronize(streams[0]));
    for (int i = 0; i < 3; i++) {
        memset(got, 0, bytes);
        DRIVER(cuMemcpyDtoHAsync(got, memory[i], bytes, streams[i % 2]));
        DRIVER(cuStreamSynchronize(streams[i % 2]));
        CHECK(memcmp(sent, got, bytes) == 0, "device %d", i);
    }
    if (trial_failures) return 1;
    puts("OK 0");
    return 0;
}
