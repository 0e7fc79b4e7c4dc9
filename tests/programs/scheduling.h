/* What the C library does not have of the kernel's interface to its schedulers. */
#ifndef TRIAL_SCHEDULING_H
#define TRIAL_SCHEDULING_H

#include <stdint.h>

/* Of `ioprio_get` and `ioprio_set`. */
enum { IOPRIO_PROCESS = 1, IOPRIO_BEST_EFFORT = 2 << 13 };

/* `struct sched_attr`. */
struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

#endif
