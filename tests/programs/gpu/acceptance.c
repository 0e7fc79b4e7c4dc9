/* trial: ranks=1 flags=-ldl
 * What `ci/gpu-acceptance` measures of a driver, without MPI:
 *   acceptance lock BYTES              a process whose GPU is at work is locked and unlocked
 *   acceptance stopped BYTES           what the driver tells of a process whose threads all stand still
 *   acceptance waits MILLISECONDS      a process whose kernel takes so long is locked with a shorter limit, and then with a longer one
 *   acceptance calls BYTES [ROUNDS]    a process with so many bytes on a GPU is locked, checkpointed, restored and unlocked by another one
 *   acceptance copies BYTES STREAMS    so many bytes to and from pinned memory, shared by so many streams
 * A result is a line on its own, and so is each call before it is made; where something fails the exit status says so.
 */
#include "../common.h"
#include "../driver.h"
#include <string.h>
#include <sys/wait.h>

enum { PIECE = 64 << 20 };

static const char SPIN[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry spin(.param .u64 spin_0)\n{\n"
    ".reg .pred %p<2>;\n.reg .b64 %rd<6>;\nld.param.u64 %rd1, [spin_0];\nmul.lo.u64 %rd2, %rd1, 1000000;\nmov.u64 %rd3, %globaltimer;\n"
    "add.u64 %rd4, %rd3, %rd2;\nAGAIN:\nmov.u64 %rd5, %globaltimer;\nsetp.lt.u64 %p1, %rd5, %rd4;\n@%p1 bra AGAIN;\nret;\n}\n";

static void use_device(void) {
    driver_open();
    DRIVER(cuInit(0));
    int device;
    context used;
    DRIVER(cuDeviceGet(&device, 0));
    DRIVER(cuDevicePrimaryCtxRetain(&used, device));
    DRIVER(cuCtxSetCurrent(used));
}

/* What lies in a piece is the same in all of them, but for its number in front. */
static unsigned char *pattern(void) {
    uint64_t *made = malloc(PIECE);
    for (size_t i = 0; i < PIECE / 8; i++) made[i] = trial_mix(i);
    return (unsigned char *)made;
}

static size_t piece(unsigned char *made, size_t at, size_t bytes) {
    uint64_t number = at / PIECE;
    memcpy(made, &number, sizeof number);
    return bytes - at < PIECE ? bytes - at : PIECE;
}

/* Fills the device's memory piece by piece, or compares it. */
static void pieces(device_pointer memory, size_t bytes, int compare) {
    unsigned char *made = pattern(), *there = malloc(PIECE);
    for (size_t at = 0; at < bytes; at += PIECE) {
        size_t length = piece(made, at, bytes);
        if (!compare) {
            DRIVER(cuMemcpyHtoD(memory + at, made, length));
            continue;
        }
        DRIVER(cuMemcpyDtoH(there, memory + at, length));
        CHECK(memcmp(made, there, length) == 0, "other bytes at %zu", at);
    }
    free(made);
    free(there);
}

/* The process that is checkpointed: says so when it is ready, and compares when it is told to. A busy one copies to and fro until then. */
static int target(size_t bytes, int busy, int said, int told) {
    use_device();
    device_pointer memory, other;
    DRIVER(cuMemAlloc(&memory, bytes));
    DRIVER(cuMemAlloc(&other, busy ? bytes : 1));
    pieces(memory, bytes, 0);
    char letter = 'r';
    if (write(said, &letter, 1) != 1 || fcntl(told, F_SETFL, busy ? O_NONBLOCK : 0) != 0) return 1;
    ssize_t got;
    while ((got = read(told, &letter, 1)) == -1 && errno == EAGAIN) {
        DRIVER(cuMemcpyDtoDAsync(other, memory, bytes, NULL));
        DRIVER(cuMemcpyDtoDAsync(memory, other, bytes, NULL));
        DRIVER(cuStreamSynchronize(NULL));
    }
    if (got != 1) return 1;
    pieces(memory, bytes, 1);
    return trial_failures != 0;
}

/* Makes a call and says so before and after it: a driver that hangs hangs in a call with a name. Returns how long it took. */
#define TIMED(call) (printf("%s ...\n", #call), fflush(stdout), timed_since = trial_seconds(), DRIVER_VALUE(call), trial_seconds() - timed_since)
static double timed_since;
static void succeeds(int result, const char *call, int line) {
    if (result != 0) driver_failed(__FILE__, line, call, result);
}
#define DRIVER_VALUE(call) succeeds(call, #call, __LINE__)

/* A process whose kernel takes long. It says that it is ready when the kernel runs, and waits for its end. */
static int spinning(uint64_t milliseconds, int said, int told) {
    use_device();
    module kernels;
    function spin;
    DRIVER(cuModuleLoadData(&kernels, SPIN));
    DRIVER(cuModuleGetFunction(&spin, kernels, "spin"));
    void *parameters[] = {&milliseconds};
    DRIVER(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    char letter = 'r';
    if (write(said, &letter, 1) != 1) return 1;
    DRIVER(cuStreamSynchronize(NULL));
    return read(told, &letter, 1) != 1 || trial_failures != 0;
}

/* A driver's call; an old driver has no such calls. */
static void *found(const char *name) {
    void *call = dlsym(dlopen("libcuda.so.1", RTLD_NOW), name);
    if (!call) {
        printf("the driver has no %s\n", name);
        exit(1);
    }
    return call;
}

/* Starts a process that is checkpointed, and waits until it is ready. Returns its id, or -1; `tell` gets the way to tell it to go on. */
static pid_t begin_with(int (*run)(uint64_t, int, int), uint64_t value, int *tell) {
    int said[2], told[2];
    if (pipe(said) || pipe(told)) return -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        close(told[1]);
        _exit(run(value, said[1], told[0]));
    }
    char letter;
    close(said[1]);
    if (read(said[0], &letter, 1) != 1) return -1;
    *tell = told[1];
    use_device();
    return child;
}
static int idle(uint64_t bytes, int said, int told) { return target(bytes, 0, said, told); }
static int at_work(uint64_t bytes, int said, int told) { return target(bytes, 1, said, told); }
static pid_t begin(size_t bytes, int busy, int *tell) { return begin_with(busy ? at_work : idle, bytes, tell); }

/* Has it compare, and waits for its end. */
static int end(pid_t child, int tell) {
    char letter = 'g';
    int status = 1;
    if (write(tell, &letter, 1) != 1 || waitpid(child, &status, 0) != child) return 1;
    return !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static pid_t stopped_child;
static void runs_on(int signal) {
    (void)signal;
    kill(stopped_child, SIGCONT);
}

/* Stillpoint asks for the restore thread while all threads of a rank stand still, and for the state while that thread runs. */
static int stopped(size_t bytes) {
    int tell, thread = 0, state = -1, without = 0;
    stopped_child = begin(bytes, 0, &tell);
    if (stopped_child == -1) return 1;
    int (*get_thread)(int, int *), (*get_state)(int, int *);
    *(void **)&get_thread = found("cuCheckpointProcessGetRestoreThreadId");
    *(void **)&get_state = found("cuCheckpointProcessGetState");
    int thread_without = get_thread(getppid(), &without), state_without = get_state(getppid(), &without);
    printf("| a process without a driver: thread %d, state %d (CUresult)\n", thread_without, state_without);
    kill(stopped_child, SIGSTOP);
    waitpid(stopped_child, NULL, WUNTRACED);
    signal(SIGALRM, runs_on);
    alarm(5);
    TIMED(get_thread(stopped_child, &thread));
    unsigned left = alarm(5);
    printf("| the restore thread of a stopped process: %s\n", left ? "told" : "not told until it runs on");
    double since = trial_seconds();
    TIMED(get_state(stopped_child, &state));
    printf("| its state: %d, after %.1f s\n", state, trial_seconds() - since);
    alarm(0);
    runs_on(0);
    char name[64] = "", path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/comm", (int)stopped_child, thread);
    FILE *comm = fopen(path, "r");
    CHECK(comm && fgets(name, sizeof name, comm), "thread %d is none of the process", thread);
    if (comm) fclose(comm);
    printf("| its restore thread is %s", name);
    return end(stopped_child, tell) || !left || trial_failures != 0;
}

/* A lock that comes too early gives up, and leaves the process as it was. */
static int waits(uint64_t milliseconds) {
    int tell;
    pid_t child = begin_with(spinning, milliseconds, &tell);
    if (child == -1) return 1;
    int (*lock)(int, void *), (*unlock)(int, void *);
    *(void **)&lock = found("cuCheckpointProcessLock");
    *(void **)&unlock = found("cuCheckpointProcessUnlock");
    uint64_t early[8] = {milliseconds / 4}, late[8] = {milliseconds * 4};
    double since = trial_seconds();
    int result = lock(child, early);
    printf("| a lock with a limit of %.2f s, with a kernel of %.2f s under way: result %d after %.2f s\n", (double)milliseconds / 4e3, (double)milliseconds / 1e3,
           result, trial_seconds() - since);
    CHECK(result == 600, "the lock did not give up");
    if (result != 0) {
        since = trial_seconds();
        result = lock(child, late);
        printf("| the next one: result %d after %.2f s\n", result, trial_seconds() - since);
    }
    TIMED(unlock(child, NULL));
    return end(child, tell) || result != 0 || trial_failures != 0;
}

/* The process that checkpoints another one, or only locks it. */
static int calls(size_t bytes, int rounds, int lock_alone) {
    int tell;
    pid_t child = begin(bytes, lock_alone, &tell);
    if (child == -1) return 1;
    int (*lock)(int, void *), (*checkpoint)(int, void *), (*restore)(int, void *), (*unlock)(int, void *);
    *(void **)&lock = found("cuCheckpointProcessLock");
    *(void **)&checkpoint = found("cuCheckpointProcessCheckpoint");
    *(void **)&restore = found("cuCheckpointProcessRestore");
    *(void **)&unlock = found("cuCheckpointProcessUnlock");
    for (int round = 0; round < rounds; round++) {
        uint64_t arguments[8] = {10000};
        double locked = TIMED(lock(child, arguments)), away = 0, back = 0;
        if (!lock_alone) away = TIMED(checkpoint(child, NULL)), back = TIMED(restore(child, NULL));
        double unlocked = TIMED(unlock(child, NULL));
        if (lock_alone)
            printf("%zu bytes: lock %.4f s, unlock %.4f s\n", bytes, locked, unlocked);
        else
            printf("%zu bytes: lock %.4f s, checkpoint %.4f s (%.2f GB/s), restore %.4f s (%.2f GB/s), unlock %.4f s\n", bytes, locked, away,
                   (double)bytes / away / 1e9, back, (double)bytes / back / 1e9, unlocked);
    }
    return end(child, tell);
}

static void copy_all(char *host, device_pointer memory, size_t share, int streams, const stream *used, int back) {
    for (int i = 0; i < streams; i++) {
        size_t at = (size_t)i * share;
        if (back) DRIVER(cuMemcpyDtoHAsync(host + at, memory + at, share, used[i]));
        else DRIVER(cuMemcpyHtoDAsync(memory + at, host + at, share, used[i]));
    }
    for (int i = 0; i < streams; i++) DRIVER(cuStreamSynchronize(used[i]));
}

static int copies(size_t bytes, int streams) {
    use_device();
    device_pointer memory;
    char *host;
    stream used[64];
    if (streams < 1 || streams > 64) return 1;
    size_t share = bytes / (size_t)streams;
    bytes = share * (size_t)streams;
    DRIVER(cuMemAlloc(&memory, bytes));
    DRIVER(cuMemHostAlloc((void **)&host, bytes, 0));
    unsigned char *made = pattern();
    for (size_t at = 0; at < bytes; at += PIECE) {
        size_t length = piece(made, at, bytes);
        memcpy(host + at, made, length);
    }
    for (int i = 0; i < streams; i++) DRIVER(cuStreamCreate(&used[i], 1));
    double best[2] = {0, 0};
    for (int round = 0; round < 4; round++)
        for (int back = 0; back < 2; back++) {
            double started = trial_seconds();
            copy_all(host, memory, share, streams, used, back);
            double rate = (double)bytes / (trial_seconds() - started);
            if (rate > best[back]) best[back] = rate;
        }
    memset(host, 0, bytes);
    copy_all(host, memory, share, streams, used, 1);
    for (size_t at = 0; at < bytes; at += PIECE) {
        size_t length = piece(made, at, bytes);
        CHECK(memcmp(host + at, made, length) == 0, "other bytes came back at %zu", at);
    }
    printf("%zu bytes, %d streams: to the device %.2f GB/s, from it %.2f GB/s\n", bytes, streams, best[0] / 1e9, best[1] / 1e9);
    return trial_failures != 0;
}

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[1], "lock") == 0) return calls(strtoull(argv[2], NULL, 10), 3, 1);
    if (argc > 2 && strcmp(argv[1], "stopped") == 0) return stopped(strtoull(argv[2], NULL, 10));
    if (argc > 2 && strcmp(argv[1], "waits") == 0) return waits(strtoull(argv[2], NULL, 10));
    if (argc > 2 && strcmp(argv[1], "calls") == 0) return calls(strtoull(argv[2], NULL, 10), argc > 3 ? atoi(argv[3]) : 1, 0);
    if (argc > 3 && strcmp(argv[1], "copies") == 0) return copies(strtoull(argv[2], NULL, 10), atoi(argv[3]));
    fprintf(stderr, "acceptance lock BYTES | stopped BYTES | waits MILLISECONDS | calls BYTES [ROUNDS] | copies BYTES STREAMS\n");
    return 2;
}
