/* Code on a stack that is hardly larger than it needs, in a thread with an alternate signal stack, as some languages run theirs:
 * nothing is written below that stack, whatever the code does there and whenever it is stopped.
 * trial: ranks=2 flags=-pthread */
#include "../common.h"
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>

enum { STACK = 2048, BELOW = 64 * 1024, ALTERNATE = 32 * 1024 };

static ucontext_t outside, inside;
static volatile long turns;
static volatile int stop, wrong;

/* No more than a few words of stack, and no function of a library. */
static long call(long number, long a, long b, long c) {
    register long result __asm__("rax") = number;
    __asm__ volatile("syscall" : "+r"(result) : "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}

static void on_small_stack(void) {
    while (!stop) {
        long file = call(SYS_open, (long)"/proc/self/exe", O_RDONLY, 0);
        if (file < 0 || call(SYS_close, file, 0, 0) || call(SYS_getpid, 0, 0, 0) <= 0) wrong++;
        for (volatile int i = 0; i < 1000; i++) continue;
        turns++;
    }
}

static void *thread(void *memory) {
    static char alternate[ALTERNATE];
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate}, none = {.ss_flags = SS_DISABLE}, after;
    sigaltstack(&stack, NULL);
    getcontext(&inside);
    inside.uc_stack.ss_sp = (char *)memory + BELOW;
    inside.uc_stack.ss_size = STACK;
    inside.uc_link = &outside;
    makecontext(&inside, on_small_stack, 0);
    swapcontext(&outside, &inside);
    sigaltstack(&none, &after);
    CHECK(after.ss_sp == alternate && after.ss_size == ALTERNATE && !after.ss_flags, "the alternate stack is %p, %zu, %d", after.ss_sp,
          after.ss_size, after.ss_flags);
    return NULL;
}

int main(int argc, char **argv) {
    trial_start_threads(&argc, &argv, MPI_THREAD_FUNNELED);
    unsigned char *memory = mmap(NULL, BELOW + STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(memory, 0x5a, BELOW);
    pthread_t id;
    pthread_create(&id, NULL, thread, memory);
    while (turns < 10) usleep(1000);
    trial_hold();
    long before = turns;
    while (turns < before + 10) usleep(1000);
    stop = 1;
    pthread_join(id, NULL);
    int written = 0;
    for (int i = 0; i < BELOW; i++) written += memory[i] != 0x5a;
    CHECK(written == 0, "%d bytes written below the stack", written);
    CHECK(wrong == 0, "%d calls failed", wrong);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
