/* Small stacks: a thread on the smallest stack, one with an alternate stack that is too small for a signal on most processors, and a handler
 * on an alternate stack of 8 KiB, make trapped calls. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* MINSIGSTKSZ before it depended on the processor. */
enum { MINSIGSTKSZ_OF_OLD = 2048 };

static char *alternate;
static volatile int calls;

static void make_calls(void) {
    void *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    map = mremap(map, 4096, 1 << 20, MREMAP_MAYMOVE);
    munmap(map, 1 << 20);
    int fd = open("/proc/self/exe", O_RDONLY);
    char path[256];
    calls += getpid() > 0 && map != MAP_FAILED && fd >= 0 && readlink("/proc/self/exe", path, sizeof path) > 0;
    close(fd);
    sigset_t set;
    sigemptyset(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGUSR2, SIG_IGN);
}

static void handler(int signal) { (void)signal; make_calls(); }
static void *thread(void *unused) { make_calls(); return unused; }

/* Natively nothing is ever written there: no handler asks for it. */
static void *beside_a_tiny_stack(void *memory) {
    stack_t tiny = {.ss_sp = (char *)memory + 8192, .ss_size = MINSIGSTKSZ_OF_OLD};
    int set = sigaltstack(&tiny, NULL), untouched = 0;
    make_calls();
    while (untouched < 8192 && ((char *)memory)[untouched] == 0x5a) untouched++;
    printf("tiny stack %d, %s\n", set, untouched == 8192 ? "kept" : "OVERRUN");
    return NULL;
}

int main(void) {
    alternate = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(alternate, 0x5a, 16384);
    stack_t stack = {.ss_sp = alternate + 8192, .ss_size = 8192};
    sigaltstack(&stack, NULL);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    int untouched = 0;
    while (untouched < 16384 && alternate[untouched] == 0x5a) untouched++;
    printf("handler %d, %s\n", calls, untouched >= 8192 ? "stack kept" : "STACK OVERRUN");
    if (getenv("SHOW")) printf("%d left\n", untouched - 8192);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN);
    pthread_t id;
    for (int i = 0; i < 10; i++) {
        pthread_create(&id, &attributes, thread, NULL);
        pthread_join(id, NULL);
    }
    memset(alternate, 0x5a, 8192);
    pthread_create(&id, NULL, beside_a_tiny_stack, alternate);
    pthread_join(id, NULL);
    printf("threads %d\n", calls);
    return 0;
}
