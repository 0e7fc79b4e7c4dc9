/* Processes: fork, exec, system, popen, posix_spawn, vfork, what children inherit, and how they end. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void *run(void *unused) { printf("thread in child\n"); return unused; }
static void handler(int signal) { (void)signal; }

int main(int count, char **arguments) {
    if (count > 1) {
        sigset_t mask;
        struct sigaction usr1, usr2;
        sigprocmask(SIG_SETMASK, NULL, &mask);
        sigaction(SIGUSR1, NULL, &usr1);
        sigaction(SIGUSR2, NULL, &usr2);
        printf("child %s: blocked %d ignored %d handled %d preload %s\n", arguments[1], sigismember(&mask, SIGTERM),
               usr1.sa_handler == SIG_IGN, usr2.sa_handler != SIG_DFL, getenv("LD_PRELOAD") ? "set" : "none");
        return 3;
    }
    setvbuf(stdout, NULL, _IONBF, 0);
    int status;
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length] = 0;
    printf("exe %s\n", strrchr(self, '/') + 1);
    pid_t parent = getpid();
    pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        printf("forked %d %d %d\n", getppid() == parent, getpid() != parent, (int)syscall(SYS_gettid) == getpid());
        pthread_create(&thread, NULL, run, NULL);
        pthread_join(thread, NULL);
        exit(5);
    }
    printf("waited %d", waitpid(child, &status, 0) == child);
    printf(" %d\n", WEXITSTATUS(status));
    printf("system %d\n", WEXITSTATUS(system("echo in a shell; exit 4")));
    printf("system of nothing %d\n", WEXITSTATUS(system("/nonexistent/program 2>/dev/null")));
    FILE *from = popen("cat; echo done", "w");
    fprintf(from, "through a pipe\n");
    printf("pclose %d\n", pclose(from));

    signal(SIGUSR1, SIG_IGN);
    signal(SIGUSR2, handler);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    char *list[] = {self, "spawned", NULL};
    int spawned = posix_spawn(&child, self, NULL, NULL, list, environ);
    waitpid(child, &status, 0);
    printf("spawned %d %d\n", spawned, WEXITSTATUS(status));
    printf("spawn fails %d\n", posix_spawn(&child, "/nonexistent", NULL, NULL, list, environ) == ENOENT);
    struct sigaction action;
    sigaction(SIGUSR2, NULL, &action);
    printf("still handled %d\n", action.sa_handler == handler);
    child = vfork();
    if (child == 0) {
        list[1] = "vforked";
        execv("/proc/self/exe", list);
        _exit(9);
    }
    waitpid(child, &status, 0);
    printf("vforked %d\n", WEXITSTATUS(status));
    child = fork();
    if (child == 0) {
        execl("/nonexistent", "x", NULL);
        printf("exec fails %d\n", errno == ENOENT);
        execl("/etc/passwd", "x", NULL);
        printf("exec fails %d\n", errno == EACCES);
        execl("/usr", "x", NULL);
        printf("exec fails %d\n", errno == EACCES);
        kill(getpid(), SIGKILL);
    }
    waitpid(child, &status, 0);
    printf("killed by %d\n", WTERMSIG(status));
    list[1] = "exec";
    fflush(stdout);
    execv(self, list);
    return 1;
}
