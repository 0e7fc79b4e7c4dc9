/* Every register of a thread - general ones, vector ones, x87 and SSE control words - is the same afterwards.
 * trial: ranks=2 flags=-pthread */
#include "../common.h"
#include <cpuid.h>
#include <fenv.h>
#include <pthread.h>

static volatile int let_go;
static int has_avx;

/* Loads known values, spins until let_go, and says whether any register has changed. */
static int spin_sse(void) {
    uint64_t in[2] = {0x1111222233334444u, 0x5555666677778888u}, out[2] = {0, 0}, general = 0;
    __asm__ volatile(
        "movdqu %[in], %%xmm3\n\tmovdqu %[in], %%xmm15\n\tpaddq %%xmm15, %%xmm15\n\t"
        "movabsq $0x123456789abcdef0, %%r12\n\tmovabsq $0x0fedcba987654321, %%r8\n\t"
        "stc\n\tstd\n"
        "1:\tpause\n\tmovl %[flag], %%eax\n\ttestl %%eax, %%eax\n\tjz 1b\n\t"
        "cld\n\tpaddq %%xmm3, %%xmm15\n\tmovdqu %%xmm15, %[out]\n\t"
        "addq %%r8, %%r12\n\tmovq %%r12, %[general]\n\t"
        : [out] "=m"(out), [general] "=m"(general)
        : [in] "m"(in), [flag] "m"(let_go)
        : "xmm3", "xmm15", "r12", "r8", "rax", "cc", "memory");
    return out[0] == 3 * in[0] && out[1] == 3 * in[1] && general == 0x123456789abcdef0u + 0x0fedcba987654321u;
}

__attribute__((target("avx"))) static int spin_avx(void) {
    double in[4] = {1.5, -2.5, 3.5, 1e100}, out[4] = {0};
    __asm__ volatile(
        "vmovupd %[in], %%ymm5\n\tvmovupd %[in], %%ymm14\n\tvaddpd %%ymm14, %%ymm5, %%ymm14\n"
        "1:\tpause\n\tmovl %[flag], %%eax\n\ttestl %%eax, %%eax\n\tjz 1b\n\t"
        "vaddpd %%ymm5, %%ymm14, %%ymm5\n\tvmovupd %%ymm5, %[out]\n\tvzeroupper\n\t"
        : [out] "=m"(out)
        : [in] "m"(in), [flag] "m"(let_go)
        : "ymm5", "ymm14", "rax", "cc", "memory");
    for (int i = 0; i < 4; i++)
        if (out[i] != 3 * in[i]) return 0;
    return 1;
}

/* Values on the x87 stack, with another precision and rounding. */
static int spin_x87(void) {
    long double out = 0;
    unsigned short control = 0x0c7f, after = 0, before = 0;
    __asm__ volatile(
        "fnstcw %[before]\n\tfldcw %[control]\n\tfldpi\n\tfldl2e\n"
        "1:\tpause\n\tmovl %[flag], %%eax\n\ttestl %%eax, %%eax\n\tjz 1b\n\t"
        "fxch\n\tfstp %%st(1)\n\tfstpt %[out]\n\tfnstcw %[after]\n\tfldcw %[before]\n\t"
        : [out] "=m"(out), [after] "=m"(after), [before] "=m"(before)
        : [control] "m"(control), [flag] "m"(let_go)
        : "rax", "cc", "memory", "st", "st(1)");
    return (after & 0x0f3f) == (control & 0x0f3f) && out > 3.14159265358979L && out < 3.14159265358980L;
}

static void *body(void *argument) {
    intptr_t which = (intptr_t)argument, right = 1;
    fesetround(which == 0 ? FE_UPWARD : FE_DOWNWARD);
    switch (which) {
    case 0: right = spin_sse(); break;
    case 1: right = has_avx ? spin_avx() : 1; break;
    case 2: right = spin_x87(); break;
    default:
        while (!let_go) usleep(1000);
    }
    CHECK(fegetround() == (which == 0 ? FE_UPWARD : FE_DOWNWARD), "rounding of thread %d is %d", (int)which, fegetround());
    volatile double one = 1.0, three = 3.0, third = one / three;
    CHECK(which == 0 ? third * 3 >= 1.0 : third * 3 <= 1.0, "rounding of thread %d does not work", (int)which);
    return (void *)right;
}

int main(int argc, char **argv) {
    trial_start_threads(&argc, &argv, MPI_THREAD_FUNNELED);
    pthread_t threads[4];
    has_avx = __builtin_cpu_supports("avx") != 0;
    fesetround(FE_TOWARDZERO);
    for (intptr_t i = 0; i < 4; i++) pthread_create(&threads[i], NULL, body, (void *)i);
    usleep(20000);
    trial_hold();
    let_go = 1;
    for (int i = 0; i < 4; i++) {
        void *right = NULL;
        pthread_join(threads[i], &right);
        CHECK(right, "registers of thread %d", i);
    }
    CHECK(fegetround() == FE_TOWARDZERO, "rounding of the main thread is %d", fegetround());
    fesetround(FE_TONEAREST);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
