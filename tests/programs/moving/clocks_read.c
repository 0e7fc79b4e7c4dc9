/* Threads do nothing but read clocks, so that a checkpoint finds them in the kernel's vDSO, which every launch has at
 * another place.
 * trial: ranks=2 flags=-pthread */
#include "../moving.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/time.h>

static atomic_int ending;

static void *read_clocks(void *argument) {
    struct timespec last = {0, 0}, now;
    struct timeval time_of_day;
    while (!ending) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        CHECK(now.tv_sec > last.tv_sec || (now.tv_sec == last.tv_sec && now.tv_nsec >= last.tv_nsec), "the clock went back");
        last = now;
        gettimeofday(&time_of_day, NULL);
        CHECK(sched_getcpu() >= 0 && time(NULL) > 0 && time_of_day.tv_sec > 0, "clocks");
    }
    return argument;
}

int main(int argc, char **argv) {
    trial_start_threads(&argc, &argv, MPI_THREAD_FUNNELED);
    pthread_t thread;
    pthread_create(&thread, NULL, read_clocks, NULL);
    for (uint64_t round = 0; moving_agree(round, MPI_COMM_WORLD); round++) trial_compute(0.002);
    ending = 1;
    pthread_join(thread, NULL);
    return trial_finish();
}
