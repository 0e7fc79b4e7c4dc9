/* A library loaded with dlopen stays, thread-local variables and all; others can be loaded afterwards.
 * trial: ranks=2 flags=-pthread library=counter.c */
#include "../common.h"
#include <dlfcn.h>
#include <pthread.h>

static int (*count_up)(int);

static void *in_thread(void *argument) {
    CHECK(count_up(5) == 105, "in a new thread the counter is %d", count_up(0));
    return argument;
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", argv[0]);
    char *slash = strrchr(path, '/');
    strcpy(slash ? slash + 1 : path, "libcounter.so");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(library != NULL, "dlopen: %s", dlerror());
    if (!library) return 1;
    count_up = (int (*)(int))dlsym(library, "count_up");
    int *shared = dlsym(library, "shared_number");
    *shared = 17;
    CHECK(count_up(1) == 101 && count_up(1) == 102, "counting before");
    trial_hold();
    CHECK(count_up(1) == 103, "the counter is %d", count_up(0));
    CHECK(*shared == 17, "the library's variable is %d", *shared);
    CHECK(dlsym(library, "count_up") == (void *)count_up, "the function has moved");
    pthread_t thread;
    pthread_create(&thread, NULL, in_thread, NULL);
    pthread_join(thread, NULL);
    void *another = dlopen("libresolv.so.2", RTLD_NOW);
    CHECK(another != NULL, "loading another one: %s", dlerror());
    CHECK(dlclose(library) == 0, "dlclose: %s", dlerror());
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
