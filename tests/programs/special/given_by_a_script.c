/* A script has given a nice value, processors, a personality and an out-of-memory score to the program that it started: it has them until the end.
 * trial: ranks=1 */
#include "../common.h"
#include <sched.h>
#include <sys/personality.h>
#include <sys/resource.h>

struct given {
    int nice, personality, score;
    cpu_set_t processors;
};

static struct given look(void) {
    struct given given;
    memset(&given, 0, sizeof given);
    given.nice = getpriority(PRIO_PROCESS, 0);
    given.personality = personality(0xffffffff);
    FILE *score = fopen("/proc/self/oom_score_adj", "r");
    CHECK(score && fscanf(score, "%d", &given.score) == 1, "oom_score_adj: %s", strerror(errno));
    if (score) fclose(score);
    CHECK(sched_getaffinity(0, sizeof given.processors, &given.processors) == 0, "sched_getaffinity: %s", strerror(errno));
    return given;
}

int main(int argc, char **argv) {
    struct given first = look();
    CHECK(first.nice == 5 && first.score == 300, "nice value %d, score %d", first.nice, first.score);
    CHECK(first.personality & ADDR_NO_RANDOMIZE, "personality %#x", first.personality);
    trial_start(&argc, &argv);
    struct given then = look();
    trial_hold();
    struct given now = look();
    CHECK(now.nice == then.nice, "nice value %d, was %d", now.nice, then.nice);
    CHECK(now.personality == then.personality, "personality %#x, was %#x", now.personality, then.personality);
    CHECK(now.score == then.score, "out-of-memory score %d, was %d", now.score, then.score);
    CHECK(CPU_EQUAL(&now.processors, &then.processors), "%d processors, were %d", CPU_COUNT(&now.processors), CPU_COUNT(&then.processors));
    return trial_finish();
}
