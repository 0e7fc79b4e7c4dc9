/* Whoever takes a signal by sigwaitinfo is told who sent it, by the id that the program knows: itself, by kill, sigqueue and tgkill, waiting
 * at the checkpoint or sent later; a thread that has waited in the call all along; and a child of its own.
 * trial: ranks=2 flags=-pthread */
#include "../common.h"
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static sigset_t only(int signal) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    return set;
}

static void take(int signal, pid_t sender, const char *what) {
    sigset_t set = only(signal);
    siginfo_t info = {0};
    int got;
    while ((got = sigwaitinfo(&set, &info)) < 0 && errno == EINTR) continue;
    CHECK(got == signal, "%s: signal %d instead of %d", what, got, signal);
    CHECK(info.si_pid == sender, "%s: sent by %d instead of %d", what, info.si_pid, sender);
}

static void *wait_for_one(void *me) {
    take(SIGRTMIN + 7, *(pid_t *)me, "a thread that was waiting");
    return NULL;
}

int main(int argc, char **argv) {
    const union sigval value = {.sival_int = 5};
    sigset_t set;
    pthread_t thread;
    pid_t me = getpid();
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (int i = 1; i < 8; i++) sigaddset(&set, SIGRTMIN + i);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    trial_start_threads(&argc, &argv, MPI_THREAD_FUNNELED);
    pthread_create(&thread, NULL, wait_for_one, &me);
    kill(me, SIGRTMIN + 1);
    sigqueue(me, SIGRTMIN + 2, value);
    usleep(10000);
    trial_hold();

    take(SIGRTMIN + 1, me, "kill before");
    take(SIGRTMIN + 2, me, "sigqueue before");
    kill(me, SIGRTMIN + 3);
    take(SIGRTMIN + 3, me, "kill after");
    sigqueue(me, SIGRTMIN + 4, value);
    take(SIGRTMIN + 4, me, "sigqueue after");
    syscall(SYS_tgkill, me, gettid(), SIGRTMIN + 5);
    take(SIGRTMIN + 5, me, "tgkill after");
    kill(me, SIGRTMIN + 7);
    pthread_join(thread, NULL);

    pid_t child = fork();
    if (child == 0) {
        if (getppid() != me || kill(me, SIGRTMIN + 6)) _exit(1);
        sigqueue(getpid(), SIGRTMIN + 2, value);
        siginfo_t own = {0};
        sigset_t one = only(SIGRTMIN + 2);
        _exit(sigwaitinfo(&one, &own) == SIGRTMIN + 2 && own.si_pid == getpid() ? 0 : 2);
    }
    take(SIGRTMIN + 6, child, "a child");
    take(SIGCHLD, child, "a child's end");
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0, "the child ended with %x", status);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
