/* Clocks and identity: time moves on, the processor is known, the process has the program's name and arguments. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <pthread.h>

int main(int count, char **arguments) {
    struct timespec a, b;
    struct timeval c;
    clock_gettime(CLOCK_MONOTONIC, &a);
    usleep(2000);
    clock_gettime(CLOCK_MONOTONIC, &b);
    printf("later %d\n", b.tv_sec * 1000000000L + b.tv_nsec - a.tv_sec * 1000000000L - a.tv_nsec >= 2000000);
    gettimeofday(&c, NULL);
    printf("same time %d\n", labs(time(NULL) - c.tv_sec) <= 1);
    printf("processor %d\n", sched_getcpu() >= 0);
    char name[16], line[4096] = {0};
    prctl(PR_GET_NAME, name);
    printf("name %s\n", name);
    FILE *file = fopen("/proc/self/cmdline", "r");
    size_t length = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    printf("%d arguments, %zu bytes:", count, length - strlen(line));
    for (char *at = line + strlen(line) + 1; at < line + length; at += strlen(at) + 1) printf(" [%s]", at);
    printf("\n%s\n", strcmp(line, arguments[0]) ? "another name" : "its own name");
    printf("secure %lu page %lu\n", getauxval(AT_SECURE), getauxval(AT_PAGESZ));
    cpu_set_t set;
    printf("affinity %d\n", sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0);
    printf("affinity of itself %d\n", sched_getaffinity(getpid(), sizeof set, &set) == 0);
    pthread_attr_t attributes;
    void *stack;
    size_t size;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &stack, &size);
    printf("stack %d %d\n", (char *)&size > (char *)stack && (char *)&size < (char *)stack + size, size >= 1 << 20);
    struct rlimit limit;
    printf("limit %d\n", prlimit(getpid(), RLIMIT_STACK, NULL, &limit));
    char deep[1 << 20];
    memset(deep, 1, sizeof deep);
    printf("deep %d\n", deep[12345]);
    return 0;
}
