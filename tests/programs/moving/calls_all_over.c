/* System calls that have been made often already, by several threads at once, while a timer interrupts them with a handler that makes the same calls: whoever is stopped, wherever that is, goes on
 * with the right results.
 * trial: ranks=2 flags=-pthread */
#include "../moving.h"
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>

static volatile int end;
static volatile uint64_t ticks;

static void calls(uint64_t value) {
    int file = open("/dev/zero", O_RDWR | O_CLOEXEC);
    CHECK(file >= 0, "open: %s", strerror(errno));
    char byte = 1;
    CHECK(read(file, &byte, 1) == 1 && byte == 0, "read: %s", strerror(errno));
    int other = dup(file);
    CHECK(other >= 0 && other != file, "dup: %s", strerror(errno));
    CHECK(close(file) == 0, "close: %s", strerror(errno));
    CHECK(write(other, &byte, 1) == 1, "write: %s", strerror(errno));
    CHECK(close(other) == 0, "close: %s", strerror(errno));
    CHECK(access("/dev/null", R_OK) == 0, "access: %s", strerror(errno));
    errno = 0;
    CHECK(access("/nowhere", R_OK) == -1 && errno == ENOENT, "access: %s", strerror(errno));
    uint64_t *memory = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED, "mmap: %s", strerror(errno));
    for (int i = 0; i < 2048; i += 256) CHECK(memory[i] == 0, "%s", "memory that is not new");
    for (int i = 0; i < 2048; i += 256) memory[i] = value + (uint64_t)i;
    for (int i = 0; i < 2048; i += 256) CHECK(memory[i] == value + (uint64_t)i, "%s", "memory that is somebody else's");
    CHECK(munmap(memory, 16384) == 0, "munmap: %s", strerror(errno));
}

static void tick(int number) {
    (void)number;
    int before = errno;
    calls(ticks++);
    errno = before;
}

static void *churn(void *argument) {
    uint64_t value = (uint64_t)(intptr_t)argument;
    while (!end && !trial_failures) calls(value = trial_mix(value));
    return NULL;
}

int main(int argc, char **argv) {
    trial_start_threads(&argc, &argv, MPI_THREAD_FUNNELED);
    for (int i = 0; i < 100; i++) calls((uint64_t)i);
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    pthread_t threads[2];
    for (intptr_t i = 0; i < 2; i++) pthread_create(&threads[i], NULL, churn, (void *)(i + 1));
    struct itimerval interval = {{0, 2000}, {0, 2000}};
    setitimer(ITIMER_REAL, &interval, NULL);
    for (uint64_t round = 0; moving_agree(round, MPI_COMM_WORLD); round++)
        for (int i = 0; i < 50; i++) calls(round);
    memset(&interval, 0, sizeof interval);
    setitimer(ITIMER_REAL, &interval, NULL);
    end = 1;
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    CHECK(ticks > 0, "%s", "no tick");
    return trial_finish();
}
