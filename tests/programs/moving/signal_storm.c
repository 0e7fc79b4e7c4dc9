/* A timer interrupts the program every millisecond, in its own code and in MPI; the handler works on data of its own.
 * trial: ranks=2 */
#include "../moving.h"
#include <signal.h>
#include <sys/time.h>

static volatile uint64_t ticks, chain = 1;
static volatile double real = 1.0;

static void tick(int number) {
    (void)number;
    int saved = errno;
    ticks++;
    chain = trial_mix(chain);
    real = real * 1.5 > 1e100 ? 1.0 : real * 1.5;
    errno = saved;
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval interval = {{0, 1000}, {0, 1000}};
    setitimer(ITIMER_REAL, &interval, NULL);
    int peer = trial_rank ^ 1;
    char *out = malloc(100000), *in = malloc(100000);
    for (uint64_t round = 0; moving_agree(round, MPI_COMM_WORLD); round++) {
        int bytes = (int)(trial_mix(round) % 100000);
        trial_fill(out, bytes, round + trial_rank);
        double before = 1.0;
        for (int i = 0; i < 2000; i++) before = before * 1.0001 + 0.5;
        MUST(MPI_Sendrecv(out, bytes, MPI_BYTE, peer, 1, in, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(trial_differs(in, bytes, round + peer) < 0, "round %d", (int)round);
        double again = 1.0;
        for (int i = 0; i < 2000; i++) again = again * 1.0001 + 0.5;
        CHECK(before == again, "round %d: a handler has changed a register", (int)round);
        errno = 77;
        for (volatile int i = 0; i < 10000; i++) {}
        CHECK(errno == 77, "round %d: errno is %d", (int)round, errno);
    }
    memset(&interval, 0, sizeof interval);
    setitimer(ITIMER_REAL, &interval, NULL);
    uint64_t count = ticks, value = 1;
    for (uint64_t i = 0; i < count; i++) value = trial_mix(value);
    CHECK(value == chain && count > 0, "%d ticks, chain wrong: %d", (int)count, value != chain);
    return trial_finish();
}
