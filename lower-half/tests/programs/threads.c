/* Threads: many, short and long ones, with their own rounding mode, names, joins and cancellation. */
#define _GNU_SOURCE
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int counter, seen_signal;
static __thread int own = 7;

static void *work(void *argument) {
    own += (int)(long)argument;
    for (int i = 0; i < 1000; i++) {
        pthread_mutex_lock(&lock);
        counter++;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    void *block = malloc(100000);
    memset(block, 1, 100000);
    free(block);
    if (syscall(SYS_gettid) == getpid()) abort();
    return (void *)(long)(own + (fegetround() == FE_UPWARD ? 1000 : 0));
}

static void *endless(void *unused) {
    for (;;) pause();
    return unused;
}

static void on_signal(int signal) { (void)signal; seen_signal = (int)syscall(SYS_gettid); }

int main(void) {
    long sum = 0;
    fesetround(FE_UPWARD);
    for (int round = 0; round < 20; round++) {
        pthread_t threads[16];
        for (long i = 0; i < 16; i++)
            if (pthread_create(&threads[i], NULL, work, (void *)i)) abort();
        for (int i = 0; i < 16; i++) {
            void *result;
            pthread_join(threads[i], &result);
            sum += (long)result;
        }
    }
    printf("%d %ld %d\n", counter, sum, own);
    pthread_t thread;
    pthread_create(&thread, NULL, endless, NULL);
    signal(SIGUSR1, on_signal);
    usleep(10000);
    pthread_kill(thread, SIGUSR1);
    while (!seen_signal) usleep(1000);
    printf("%s\n", seen_signal != getpid() ? "on the thread" : "on main");
    pthread_cancel(thread);
    void *result;
    pthread_join(thread, &result);
    printf("%s\n", result == PTHREAD_CANCELED ? "cancelled" : "returned");
    return 0;
}
