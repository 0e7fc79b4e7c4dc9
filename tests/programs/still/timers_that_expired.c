/* Timer descriptors go on from the state that they are in: a period has gone by and nobody has read it, it was once and is over,
 * it is off but has a period, it is to be told when the clock is set.
 * trial: ranks=2 */
#include "../common.h"
#include <poll.h>
#include <sys/timerfd.h>

static int timer(int clock, int flags, long value_ms, long interval_ms) {
    int made = timerfd_create(clock, TFD_NONBLOCK);
    struct timespec now = {0};
    if (flags & TFD_TIMER_ABSTIME) clock_gettime(clock, &now);
    struct itimerspec setting = {
        .it_interval = {interval_ms / 1000, interval_ms % 1000 * 1000000},
        .it_value = {now.tv_sec + value_ms / 1000, now.tv_nsec / 2 + value_ms % 1000 * 1000000},
    };
    CHECK(made >= 0 && timerfd_settime(made, flags, &setting, NULL) == 0, "timer: %s", strerror(errno));
    return made;
}

static uint64_t expirations(int timer, int patience_ms) {
    struct pollfd poll_it = {.fd = timer, .events = POLLIN};
    uint64_t count = 0;
    if (poll(&poll_it, 1, patience_ms) == 1 && read(timer, &count, sizeof count) != sizeof count) count = 0;
    return count;
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int periodic = timer(CLOCK_MONOTONIC, 0, 20, 20), over = timer(CLOCK_MONOTONIC, 0, 1, 0);
    int quick = timer(CLOCK_MONOTONIC, 0, 1, 1), absolute = timer(CLOCK_REALTIME, TFD_TIMER_ABSTIME, 20, 20);
    int told = timer(CLOCK_REALTIME, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, 3600 * 1000, 0);
    int later = timer(CLOCK_BOOTTIME, 0, 3600 * 1000, 0);
    int off = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    struct itimerspec setting = {.it_interval = {7, 0}}, got;
    CHECK(timerfd_settime(off, 0, &setting, NULL) == 0, "timer: %s", strerror(errno));
    usleep(50000);
    trial_hold();
    CHECK(expirations(over, 0) == 1 && expirations(over, 50) == 0, "the timer that is over says something else");
    uint64_t count = expirations(periodic, 0);
    CHECK(count >= 2, "periodic: %lu expirations", (unsigned long)count);
    for (int i = 0; i < 3; i++) CHECK(expirations(periodic, 2000) >= 1, "periodic: it has stopped");
    CHECK(expirations(absolute, 2000) >= 1, "absolute: nothing");
    for (int i = 0; i < 3; i++) CHECK(expirations(absolute, 2000) >= 1, "absolute: it has stopped");
    for (int i = 0; i < 3; i++) CHECK(expirations(quick, 2000) >= 1, "quick: it has stopped");
    CHECK(timerfd_gettime(off, &got) == 0 && got.it_interval.tv_sec == 7 && got.it_value.tv_sec == 0 && got.it_value.tv_nsec == 0,
          "off: %ld s of %ld s", (long)got.it_value.tv_sec, (long)got.it_interval.tv_sec);
    CHECK(timerfd_gettime(told, &got) == 0 && got.it_value.tv_sec > 3000 && got.it_value.tv_sec <= 3600, "told: %ld s", (long)got.it_value.tv_sec);
    CHECK(timerfd_gettime(later, &got) == 0 && got.it_value.tv_sec > 3000 && got.it_value.tv_sec <= 3600, "later: %ld s", (long)got.it_value.tv_sec);
    char path[64], line[128];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", told);
    FILE *info = fopen(path, "r");
    int flags = -1;
    while (info && fgets(line, sizeof line, info)) sscanf(line, "settime flags: %o", (unsigned *)&flags);
    CHECK(flags == (TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET), "told: flags %o", (unsigned)flags);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
