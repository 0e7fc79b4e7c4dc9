/* A thread chooses a nice value and, where there are several processors, the last of them. It is to be restarted where it may
 * have neither: it runs on with what the new launch has.
 * trial: ranks=1 flags=-pthread */
#include "../common.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

static volatile int chosen;

static void *choose(void *unused) {
    int nice = getpriority(PRIO_PROCESS, 0) + 2;
    CHECK(setpriority(PRIO_PROCESS, 0, nice) == 0, "%s", strerror(errno));
    cpu_set_t all, one, now;
    CHECK(sched_getaffinity(0, sizeof all, &all) == 0, "%s", strerror(errno));
    for (int processor = 0; processor < CPU_SETSIZE; processor++)
        if (CPU_ISSET(processor, &all)) {
            CPU_ZERO(&one);
            CPU_SET(processor, &one);
        }
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0, "%s", strerror(errno));
    chosen = 1;
    trial_wait();
    CHECK(getpriority(PRIO_PROCESS, 0) > nice, "nice value %d", getpriority(PRIO_PROCESS, 0));
    CHECK(sched_getaffinity(0, sizeof now, &now) == 0, "%s", strerror(errno));
    CHECK(CPU_COUNT(&all) == 1 || !CPU_EQUAL(&now, &one), "%s", "bound to a processor of another launch");
    return unused;
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    pthread_t thread;
    pthread_create(&thread, NULL, choose, NULL);
    while (!chosen) usleep(100);
    trial_hold();
    pthread_join(thread, NULL);
    return trial_finish();
}
