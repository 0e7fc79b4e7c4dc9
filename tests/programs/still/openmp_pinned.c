/* A team of OpenMP threads is pinned as its variables say, before a restart and by teams made after it.
 * trial: ranks=1 flags=-fopenmp,-pthread */
#include "../common.h"
#include <omp.h>
#include <pthread.h>
#include <sched.h>

enum { MOST = 8 };

static int last_cpu(const cpu_set_t *set) {
    int cpu = CPU_SETSIZE - 1;
    while (cpu >= 0 && !CPU_ISSET(cpu, set)) cpu--;
    return cpu;
}

/* Every thread of a team is on the one processor that the library believes it on, and they are spread over all of them. */
static void is_spread(int threads, int processors, const char *when) {
    int places[MOST], counts[MOST], believed[MOST];
#pragma omp parallel num_threads(threads)
    {
        cpu_set_t set;
        sched_getaffinity(0, sizeof set, &set);
        counts[omp_get_thread_num()] = CPU_COUNT(&set);
        places[omp_get_thread_num()] = last_cpu(&set);
        int processor[CPU_SETSIZE];
        omp_get_place_proc_ids(omp_get_place_num(), processor);
        believed[omp_get_thread_num()] = processor[0];
    }
    for (int i = 0; i < threads; i++) {
        CHECK(counts[i] == 1, "%s: thread %d of %d has %d processors", when, i, threads, counts[i]);
        CHECK(places[i] == believed[i], "%s: thread %d of %d on processor %d for %d", when, i, threads, places[i], believed[i]);
        for (int j = 0; j < i && threads <= processors; j++)
            CHECK(places[i] != places[j], "%s: threads %d and %d of %d on processor %d", when, i, j, threads, places[i]);
    }
}

static void *of_its_own(void *argument) {
    is_spread(*(int *)argument, *(int *)argument, "a second team");
    return NULL;
}

int main(int argc, char **argv) {
    if (!getenv("OMP_PROC_BIND")) { /* the library has looked by now */
        setenv("OMP_PROC_BIND", "spread", 1);
        setenv("OMP_PLACES", "threads", 1);
        setenv("OMP_DYNAMIC", "false", 1);
        execv("/proc/self/exe", argv);
        return 1;
    }
    trial_start(&argc, &argv);
    int processors = omp_get_num_places();
    int threads = processors < MOST ? processors : MOST;
    CHECK(processors > 0, "%d places", processors);
    is_spread(threads, processors, "before");
    trial_hold();
    is_spread(threads, processors, "afterwards");
    is_spread(threads / 2 ? threads / 2 : 1, processors, "a smaller team");
    is_spread(MOST, processors, "a larger team");
    pthread_t thread;
    pthread_create(&thread, NULL, of_its_own, &threads);
    pthread_join(thread, NULL);
    return trial_finish();
}
