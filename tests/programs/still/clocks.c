/* The clocks can be read afterwards, go on and never back, and sleeping until a moment works.
 * trial: ranks=2 */
#include "../common.h"
#include <sys/time.h>
#include <sys/times.h>

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    static const clockid_t ids[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_REALTIME_COARSE,
                                    CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME};
    struct timespec before[6], after;
    for (int i = 0; i < 6; i++) CHECK(clock_gettime(ids[i], &before[i]) == 0, "clock %d", i);
    time_t second = time(NULL);
    trial_hold();
    for (int round = 0; round < 1000; round++)
        for (int i = 0; i < 6; i++) {
            CHECK(clock_gettime(ids[i], &after) == 0, "clock %d: %s", i, strerror(errno));
            long long ahead = (after.tv_sec - before[i].tv_sec) * 1000000000LL + after.tv_nsec - before[i].tv_nsec;
            CHECK(ahead >= 0 && ahead < 600000000000LL, "clock %d went by %lld ns", i, ahead);
            before[i] = after;
        }
    struct timeval now;
    gettimeofday(&now, NULL);
    CHECK(time(NULL) >= second && now.tv_sec >= second && now.tv_sec - time(NULL) <= 1, "time");
    struct timespec resolution, used;
    CHECK(clock_getres(CLOCK_MONOTONIC, &resolution) == 0 && resolution.tv_nsec >= 1, "resolution");
    CHECK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) == 0 && clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used) == 0, "cpu time");
    clock_gettime(CLOCK_MONOTONIC, &after);
    after.tv_nsec += 20000000;
    if (after.tv_nsec >= 1000000000) after.tv_sec++, after.tv_nsec -= 1000000000;
    CHECK(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &after, NULL) == 0, "clock_nanosleep");
    clock_gettime(CLOCK_MONOTONIC, &before[0]);
    CHECK(before[0].tv_sec > after.tv_sec || (before[0].tv_sec == after.tv_sec && before[0].tv_nsec >= after.tv_nsec), "woke up early");
    struct tm parts;
    CHECK(localtime_r(&second, &parts) != NULL && parts.tm_year > 100, "localtime");
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
