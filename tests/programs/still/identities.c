/* Process and thread ids stay what they were, and lead to the right process and thread; threads and children made
 * afterwards have ids of their own and work.
 * trial: ranks=2 flags=-pthread */
#include "../common.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;
static volatile int stop, got[4];
static pid_t tids[4];
static pthread_mutex_t recursive;

static void handler(int signal, siginfo_t *info, void *context) {
    (void)context; (void)signal;
    pid_t me = (pid_t)syscall(SYS_gettid);
    for (int i = 0; i < 4; i++)
        if (tids[i] == me) got[i] += info->si_pid == getpid() ? 1 : 100;
}

static void *idle(void *argument) {
    tids[(intptr_t)argument] = (pid_t)syscall(SYS_gettid);
    while (!stop) usleep(1000);
    return (void *)(intptr_t)syscall(SYS_gettid);
}

static void *own_id(void *unused) {
    (void)unused;
    pthread_mutex_t checked;
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&checked, &kind);
    pthread_mutex_lock(&checked);
    int right = pthread_mutex_lock(&checked) == EDEADLK && pthread_mutex_unlock(&checked) == 0;
    int elsewhere = pthread_mutex_trylock(&recursive) == EBUSY;
    return (void *)(intptr_t)(right && elsewhere ? syscall(SYS_gettid) : -1);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    pid_t me = getpid(), parent = getppid();
    (void)parent;
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&recursive, &kind);
    pthread_mutex_lock(&recursive);
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, idle, (void *)(intptr_t)i);
    for (int i = 0; i < 4; i++)
        while (!((volatile pid_t *)tids)[i]) usleep(100);
    trial_hold();
    CHECK(getpid() == me && syscall(SYS_gettid) == me, "pid %d was %d", getpid(), me);
    CHECK(pthread_mutex_lock(&recursive) == 0 && pthread_mutex_unlock(&recursive) == 0, "%s", "a mutex held before");
    for (int i = 0; i < 4; i++) {
        if (i % 2) CHECK(syscall(SYS_tgkill, getpid(), tids[i], SIGUSR1) == 0, "errno %d", errno);
        else CHECK(pthread_kill(threads[i], SIGUSR1) == 0, "errno %d", errno);
        for (int k = 0; k < 2000 && !got[i]; k++) usleep(1000);
        CHECK(got[i] == 1, "thread %d: %d", i, got[i]);
        cpu_set_t set;
        CHECK(sched_getaffinity(tids[i], sizeof set, &set) == 0, "errno %d", errno);
    }
    CHECK(kill(getpid(), 0) == 0, "errno %d", errno);
    for (int round = 0; round < 50; round++) {
        pthread_t thread;
        void *id;
        pthread_create(&thread, NULL, own_id, NULL);
        pthread_join(thread, &id);
        CHECK((intptr_t)id > 0 && (intptr_t)id != me, "id %ld", (long)(intptr_t)id);
        for (int i = 0; i < 4; i++) CHECK((intptr_t)id != tids[i], "id %ld is taken", (long)(intptr_t)id);
    }
    stop = 1;
    for (int i = 0; i < 4; i++) {
        void *id;
        pthread_join(threads[i], &id);
        CHECK((intptr_t)id == tids[i], "id %ld was %d", (long)(intptr_t)id, tids[i]);
    }
    int status;
    pid_t child = fork();
    if (child == 0) _exit(getppid() == me && getpid() != me && kill(getppid(), 0) == 0 ? 11 : 1);
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 11, "status %x", status);
    CHECK(WEXITSTATUS(system("exit 12")) == 12, "%s", "system");
    char *list[] = {"sh", "-c", "exit 13", NULL};
    CHECK(posix_spawn(&child, "/bin/sh", NULL, NULL, list, environ) == 0, "%s", "spawn");
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 13, "status %x", status);
    char line[32] = "";
    FILE *from = popen("echo out of a child", "r");
    CHECK(fgets(line, sizeof line, from) && !strcmp(line, "out of a child\n"), "'%s'", line);
    CHECK(pclose(from) == 0, "%s", "pclose");
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
