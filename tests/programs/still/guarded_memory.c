/* Pages that nobody may touch (MADV_GUARD_INSTALL, Linux 6.13): in memory of the program's own, between its threads' stacks, in a file and in shared memory. They
 * are there afterwards, with what lies around them, and can be taken away again.
 * trial: ranks=2 flags=-pthread */
#include "../common.h"
#include "../signal_at.h"
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#define INSTALL 102
#define REMOVE 103
#define PAGE 4096
#define PAGES 16

struct area {
    char *at;
    const char *what;
    int guarded;
};

static void *waits(void *argument) {
    (void)argument;
    volatile char here = 7;
    trial_wait();
    CHECK(here == 7, "a variable on the stack");
    return NULL;
}

static void guard(struct area *area) {
    for (int page = 0; page < PAGES; page++) memset(area->at + page * PAGE, page + 1, PAGE);
    /* One page, three, and the last one. */
    area->guarded = madvise(area->at + 2 * PAGE, PAGE, INSTALL) == 0 && madvise(area->at + 7 * PAGE, 3 * PAGE, INSTALL) == 0
        && madvise(area->at + (PAGES - 1) * PAGE, PAGE, INSTALL) == 0;
}

static void check(const struct area *area) {
    for (int page = 0; page < PAGES; page++) {
        int guarded = area->guarded && (page == 2 || (page >= 7 && page < 10) || page == PAGES - 1);
        int signal = signal_at(area->at + page * PAGE);
        CHECK(signal == (guarded ? SIGSEGV : 0), "%s: page %d: signal %d", area->what, page, signal);
        if (!signal) CHECK(area->at[page * PAGE + 9] == page + 1, "%s: page %d", area->what, page);
    }
    if (!area->guarded) return;
    CHECK(madvise(area->at + 2 * PAGE, PAGE, REMOVE) == 0, "%s: MADV_GUARD_REMOVE: %s", area->what, strerror(errno));
    CHECK(signal_at(area->at + 2 * PAGE) == 0, "%s: a page that is no longer guarded", area->what);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    signal(SIGSEGV, caught);
    char path[PATH_MAX];
    trial_own_file(path, sizeof path, "guarded");
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0 && ftruncate(file, PAGES * PAGE) == 0, "%s: %s", path, strerror(errno));
    struct area areas[] = {
        {mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), "memory", 0},
        {mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0), "a file", 0},
        {mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), "shared memory", 0},
    };
    char *stack = mmap(NULL, PAGES * PAGE * 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    madvise(stack, PAGE, INSTALL);
    for (int i = 0; i < 3; i++) guard(&areas[i]);
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack + PAGE, PAGES * PAGE * 8 - PAGE);
    pthread_create(&thread, &attributes, waits, NULL);
    trial_hold();
    pthread_join(thread, NULL);
    for (int i = 0; i < 3; i++) check(&areas[i]);
    return trial_finish();
}
