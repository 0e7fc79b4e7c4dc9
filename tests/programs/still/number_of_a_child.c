/* After a restart a child process gets none of the ids that the program knows itself, its parent or its threads by, though the kernel may have them to give.
 * trial: ranks=1 flags=-pthread */
#include "../common.h"

#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;
static atomic_int thread_id, over, ends;

static void on_child(int signal) {
    (void)signal;
    ends++;
}

static void *body(void *argument) {
    thread_id = (int)syscall(SYS_gettid);
    while (!over) usleep(1000);
    return argument;
}

/* Has the kernel give this id next, if it is nobody's. */
static int ask_for(int id) {
    int descriptor = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) return 0;
    char text[32];
    int bytes = snprintf(text, sizeof text, "%d", id - 1), written = (int)write(descriptor, text, (size_t)bytes);
    close(descriptor);
    return written == bytes;
}

int main(int argc, char **argv) {
    trial_start_threads(&argc, &argv, MPI_THREAD_FUNNELED);
    struct sigaction action = {.sa_handler = on_child};
    sigaction(SIGCHLD, &action, NULL);
    pthread_t thread;
    pthread_create(&thread, NULL, body, NULL);
    while (!thread_id) usleep(1000);
    trial_hold();
    int known[] = {getpid(), getppid(), thread_id}, children = 0;
    for (int i = 0; i < 3; i++) {
        for (int way = 0; way < 3; way++) {
            if (!ask_for(known[i])) continue;
            int status = -1, child = -1;
            char *arguments[] = {"true", NULL};
            if (way == 0) child = fork();
            if (way == 1) child = vfork();
            if (child == 0) _exit(7);
            if (way == 2) CHECK(posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ) == 0, "posix_spawn: %s", strerror(errno));
            children++;
            CHECK(child > 0, "way %d gives %d: %s", way, child, strerror(errno));
            for (int other = 0; other < 3; other++) CHECK(child != known[other], "way %d gives %d, which is known", way, child);
            int got;
            while ((got = waitpid(-1, &status, 0)) == -1 && errno == EINTR) {}
            CHECK(got == child && WIFEXITED(status) && WEXITSTATUS(status) == (way == 2 ? 0 : 7), "wait gives %d: %x", got, status);
            CHECK(waitpid(-1, &status, WNOHANG) == -1 && errno == ECHILD, "another child than %d", child);
        }
    }
    /* Two that end at once may be told of by one signal. */
    CHECK(ends <= children, "%d signals for %d children", ends, children);
    over = 1;
    pthread_join(thread, NULL);
    return trial_finish();
}
