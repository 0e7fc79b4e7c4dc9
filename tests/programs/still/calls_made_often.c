/* A system call that is made often from one place goes another way than the first ones: it answers the same, and leaves every register and what lies below the stack
 * pointer as it was - before a restart and after it.
 * trial: ranks=1 */
#include "../common.h"
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* How often a call is made before it must have gone that way. */
#define OFTEN 100

/* What is in the registers before a call and behind it. */
struct registers {
    uint64_t general[14]; /* rbx rbp r12 r13 r14 r15 r8 r9 rdi rsi rdx r10, the result, below the stack pointer */
    uint8_t vectors[16][64];
    uint64_t masks[8];
    uint32_t control;
    uint32_t unused;
};

static int wide; /* bytes of a vector register */

/* Makes the call from one place. The wide registers are loaded and stored by what the processor has. */
#define SITE(name, number) \
    __attribute__((noinline)) static void name(struct registers *in, struct registers *out) { \
        if (wide == 64) \
            __asm__ volatile("vmovdqu64 (%0), %%zmm0\n\tvmovdqu64 64(%0), %%zmm1\n\tvmovdqu64 960(%0), %%zmm15\n\tvmovdqu64 448(%0), %%zmm31\n\t" \
                             "vmovdqu64 512(%0), %%zmm17\n\tkmovq 1024(%0), %%k1\n\tkmovq 1032(%0), %%k7" ::"r"(in->vectors) : "memory"); \
        else if (wide == 32) \
            __asm__ volatile("vmovdqu (%0), %%ymm0\n\tvmovdqu 64(%0), %%ymm1\n\tvmovdqu 960(%0), %%ymm15" ::"r"(in->vectors) : "memory"); \
        else \
            __asm__ volatile("movdqu (%0), %%xmm0\n\tmovdqu 64(%0), %%xmm1\n\tmovdqu 960(%0), %%xmm15" ::"r"(in->vectors) : "memory"); \
        __asm__ volatile( \
            "push %%rbx\n\tpush %%rbp\n\tpush %%r12\n\tpush %%r13\n\tpush %%r14\n\tpush %%r15\n\tpush %%rsi\n\t" \
            "mov %%rdi, %%rax\n\t" \
            "mov (%%rax), %%rbx\n\tmov 8(%%rax), %%rbp\n\tmov 16(%%rax), %%r12\n\tmov 24(%%rax), %%r13\n\t" \
            "mov 32(%%rax), %%r14\n\tmov 40(%%rax), %%r15\n\tmov 48(%%rax), %%r8\n\tmov 56(%%rax), %%r9\n\t" \
            "mov 64(%%rax), %%rdi\n\tmov 72(%%rax), %%rsi\n\tmov 80(%%rax), %%rdx\n\tmov 88(%%rax), %%r10\n\t" \
            "mov 104(%%rax), %%rax\n\tmov %%rax, -8(%%rsp)\n\tmov %%rax, -128(%%rsp)\n\tmov %%rax, -64(%%rsp)\n\t" \
            "movl $" #number ", %%eax\n\tsyscall\n\t" \
            "mov (%%rsp), %%rcx\n\tmov %%rax, 96(%%rcx)\n\t" \
            "mov -8(%%rsp), %%rax\n\tmov %%rax, 104(%%rcx)\n\tcmp -64(%%rsp), %%rax\n\tjne 1f\n\tcmp -128(%%rsp), %%rax\n\tje 2f\n\t" \
            "1:\tmovq $0, 104(%%rcx)\n\t2:\t" \
            "mov %%rbx, (%%rcx)\n\tmov %%rbp, 8(%%rcx)\n\tmov %%r12, 16(%%rcx)\n\tmov %%r13, 24(%%rcx)\n\t" \
            "mov %%r14, 32(%%rcx)\n\tmov %%r15, 40(%%rcx)\n\tmov %%r8, 48(%%rcx)\n\tmov %%r9, 56(%%rcx)\n\t" \
            "mov %%rdi, 64(%%rcx)\n\tmov %%rsi, 72(%%rcx)\n\tmov %%rdx, 80(%%rcx)\n\tmov %%r10, 88(%%rcx)\n\t" \
            "pop %%rsi\n\tpop %%r15\n\tpop %%r14\n\tpop %%r13\n\tpop %%r12\n\tpop %%rbp\n\tpop %%rbx" \
            : "+D"(in), "+S"(out)::"rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "cc", "memory"); \
        if (wide == 64) \
            __asm__ volatile("vmovdqu64 %%zmm0, (%0)\n\tvmovdqu64 %%zmm1, 64(%0)\n\tvmovdqu64 %%zmm15, 960(%0)\n\tvmovdqu64 %%zmm31, 448(%0)\n\t" \
                             "vmovdqu64 %%zmm17, 512(%0)\n\tkmovq %%k1, 1024(%0)\n\tkmovq %%k7, 1032(%0)\n\tvzeroupper" ::"r"(out->vectors) : "memory"); \
        else if (wide == 32) \
            __asm__ volatile("vmovdqu %%ymm0, (%0)\n\tvmovdqu %%ymm1, 64(%0)\n\tvmovdqu %%ymm15, 960(%0)\n\tvzeroupper" ::"r"(out->vectors) : "memory"); \
        else \
            __asm__ volatile("movdqu %%xmm0, (%0)\n\tmovdqu %%xmm1, 64(%0)\n\tmovdqu %%xmm15, 960(%0)" ::"r"(out->vectors) : "memory"); \
    }


SITE(make_close, 3)
SITE(make_mmap, 9)
SITE(make_sigaction, 13)
SITE(make_sigprocmask, 14)
SITE(make_access, 21)
SITE(make_dup, 32)
SITE(make_openat, 257)

static int same(const struct registers *in, const struct registers *out) {
    int bytes = wide;
    const int known[] = {0, 1, 15, 7, 8};
    for (int i = 0; i < (wide == 64 ? 5 : 3); i++) {
        if (memcmp(in->vectors[known[i]], out->vectors[known[i]], (size_t)bytes) != 0) return 0;
    }
    if (wide == 64 && (in->masks[0] != out->masks[0] || in->masks[1] != out->masks[1])) return 0;
    return memcmp(in->general, out->general, 12 * sizeof(uint64_t)) == 0 && in->general[13] == out->general[13];
}

/* Makes a call with these arguments; the result. Everything else must be as before. */
static long made(void (*site)(struct registers *, struct registers *), const char *name, long a, long b, long c, long d, long e, long f) {
    static struct registers in, out;
    uint8_t *bytes = (uint8_t *)&in;
    for (size_t i = 0; i < sizeof in; i++) bytes[i] = (uint8_t)(i * 7 + 3);
    long arguments[] = {a, b, c, d, e, f};
    const int places[] = {8, 9, 10, 11, 6, 7};
    for (int i = 0; i < 6; i++) in.general[places[i]] = (uint64_t)arguments[i];
    memset(&out, 0, sizeof out);
    site(&in, &out);
    CHECK(same(&in, &out), "a register has changed in %s", name);
    return (long)out.general[12];
}

#define CALL(name, ...) made(make_##name, #name, __VA_ARGS__)

static void all(char *page, const char *own) {
    struct stat found, executable;
    long file = CALL(openat, AT_FDCWD, (long)"/dev/null", O_RDWR, 0, 5, 6);
    CHECK(file >= 0, "openat: %ld", file);
    CHECK(write((int)file, "x", 1) == 1, "%s", strerror(errno));
    long other = CALL(dup, file, 2, 3, 4, 5, 6);
    CHECK(other > 0 && other != file, "dup: %ld", other);
    CHECK(CALL(close, other, 2, 3, 4, 5, 6) == 0, "%s", "close");
    CHECK(CALL(close, file, 2, 3, 4, 5, 6) == 0, "%s", "close");
    CHECK(CALL(close, file, 2, 3, 4, 5, 6) == -EBADF, "%s", "closed twice");
    CHECK(CALL(close, -1, 2, 3, 4, 5, 6) == -EBADF, "%s", "close of -1");
    CHECK(CALL(close, 70000, 2, 3, 4, 5, 6) == -EBADF, "%s", "close of 70000");
    /* The lowest number that is free. */
    CHECK(CALL(openat, AT_FDCWD, (long)"/dev/null", O_RDONLY, 0, 5, 6) == file, "%s", "another number");
    CHECK(CALL(close, file, 2, 3, 4, 5, 6) == 0, "%s", "close");
    /* Paths that cannot be read, to their end or at all; the end of a page is theirs too. */
    CHECK(CALL(openat, AT_FDCWD, 0, O_RDONLY, 0, 5, 6) == -EFAULT, "%s", "no path");
    CHECK(CALL(openat, AT_FDCWD, 4096, O_RDONLY, 0, 5, 6) == -EFAULT, "%s", "a path that is not there");
    CHECK(CALL(openat, AT_FDCWD, (long)(page + 4096), O_RDONLY, 0, 5, 6) == -EFAULT, "%s", "a path that may not be read");
    memset(page + 4096 - 200, 'x', 200);
    CHECK(CALL(openat, AT_FDCWD, (long)(page + 4096 - 200), O_RDONLY, 0, 5, 6) == -EFAULT, "%s", "a path without an end");
    CHECK(CALL(access, (long)(page + 4096 - 200), R_OK, 3, 4, 5, 6) == -EFAULT, "%s", "a path without an end");
    for (int from = 10; from <= 40; from++) {
        memcpy(page + 4096 - from, "/dev/null", 10);
        long end = CALL(openat, AT_FDCWD, (long)(page + 4096 - from), O_RDONLY, 0, 5, 6);
        CHECK(end >= 0, "a path %d bytes before the end of a page: %ld", from, end);
        CALL(close, end, 2, 3, 4, 5, 6);
    }
    CHECK(CALL(openat, AT_FDCWD, (long)"", O_RDONLY, 0, 5, 6) == -ENOENT, "%s", "an empty path");
    CHECK(CALL(openat, AT_FDCWD, (long)"/nowhere.exe", O_RDONLY, 0, 5, 6) == -ENOENT, "%s", "a file that is not there");
    CHECK(CALL(access, (long)"/dev/null", R_OK, 3, 4, 5, 6) == 0, "%s", "access");
    CHECK(CALL(access, (long)"/nowhere", R_OK, 3, 4, 5, 6) == -ENOENT, "%s", "access");
    /* The program itself, and what of /proc names it. */
    char by_id[64];
    snprintf(by_id, sizeof by_id, "/proc/%d/exe", getpid());
    CHECK(stat(own, &executable) == 0, "%s", strerror(errno));
    const char *names[] = {"/proc/self/exe", "//proc/self/exe", by_id};
    for (int i = 0; i < 3; i++) {
        long self = CALL(openat, AT_FDCWD, (long)names[i], O_RDONLY, 0, 5, 6);
        CHECK(self >= 0 && fstat((int)self, &found) == 0 && found.st_ino == executable.st_ino, "%s is not %s", names[i], own);
        CALL(close, self, 2, 3, 4, 5, 6);
    }
    snprintf(by_id, sizeof by_id, "/proc/%d/stat", getpid());
    long status = CALL(openat, AT_FDCWD, (long)by_id, O_RDONLY, 0, 5, 6);
    CHECK(status >= 0, "%s: %ld", by_id, status);
    CALL(close, status, 2, 3, 4, 5, 6);
    long mapped = CALL(mmap, 0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mapped > 0 && mapped % 4096 == 0, "mmap: %ld", mapped);
    memset((void *)mapped, 1, 8192);
    CHECK(munmap((void *)mapped, 8192) == 0, "%s", strerror(errno));
    CHECK(CALL(mmap, 0, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == -EINVAL, "%s", "mmap of nothing");
}

/* The kernel's own structure, and its mask's bytes. */
struct action {
    uintptr_t handler;
    unsigned long flags;
    uintptr_t restorer;
    uint64_t mask;
};
#define MASK_BYTES 8
#define BIT(signal) (UINT64_C(1) << ((signal)-1))

static volatile int came;
static void on_signal(int signal) {
    (void)signal;
    came++;
}

static long action(int signal, const struct action *new, struct action *old) { return CALL(sigaction, signal, (long)new, (long)old, MASK_BYTES, 5, 6); }
static long mask(int how, const uint64_t *new, uint64_t *old) { return CALL(sigprocmask, how, (long)new, (long)old, MASK_BYTES, 5, 6); }

static void signals(char *page) {
    struct action own, found, ignored = {.handler = (uintptr_t)SIG_IGN};
    CHECK(action(SIGUSR1, NULL, &own) == 0 && own.handler == (uintptr_t)on_signal, "another handler: %lx", (long)own.handler);
    CHECK(action(SIGUSR1, &ignored, &found) == 0 && memcmp(&own, &found, sizeof own) == 0, "%s", "another action");
    came = 0;
    CHECK(raise(SIGUSR1) == 0 && came == 0, "%s", "an ignored signal has come");
    CHECK(action(SIGUSR1, &own, &found) == 0 && found.handler == (uintptr_t)SIG_IGN, "%s", "another action");
    CHECK(raise(SIGUSR1) == 0 && came == 1, "%s", "a signal has not come");
    CHECK(action(SIGKILL, &ignored, NULL) == -EINVAL && action(SIGUSR1, (void *)(page + 4096), NULL) == -EFAULT, "%s", "not refused");
    CHECK(action(SIGUSR1, NULL, (void *)(page + 4096)) == -EFAULT, "%s", "not refused");
    /* A default and an ignored signal are told as they were set. */
    struct action never = {0}, quiet = {.handler = (uintptr_t)SIG_IGN, .flags = SA_RESTART | SA_NODEFER, .mask = BIT(SIGUSR1)};
    CHECK(action(SIGVTALRM, NULL, &found) == 0 && memcmp(&never, &found, sizeof never) == 0, "the default: %lx, %lx", (long)found.handler, found.flags);
    CHECK(action(SIGWINCH, &quiet, NULL) == 0 && action(SIGWINCH, NULL, &found) == 0, "%s", "sigaction");
    CHECK(memcmp(&quiet, &found, sizeof quiet) == 0, "an ignored signal: %lx, %lx, %lx", (long)found.handler, found.flags, (long)found.mask);

    uint64_t before, blocked, bit = BIT(SIGUSR1);
    CHECK(mask(SIG_BLOCK, &bit, &before) == 0 && !(before & bit), "%s", "blocked before");
    CHECK(mask(SIG_BLOCK, NULL, &blocked) == 0 && blocked == (before | bit), "another mask: %lx", (long)blocked);
    CHECK(raise(SIGUSR1) == 0 && came == 1, "%s", "a blocked signal has come");
    /* It comes with the call that lets it. */
    CHECK(mask(SIG_SETMASK, &before, &blocked) == 0 && blocked == (before | bit) && came == 2, "%s", "a signal has not come");
    CHECK(mask(SIG_UNBLOCK, &bit, NULL) == 0 && mask(9, &bit, NULL) == -EINVAL, "%s", "sigprocmask");
    CHECK(mask(SIG_BLOCK, (void *)(page + 4096), NULL) == -EFAULT, "%s", "not refused");
    /* What cannot be blocked is not, whatever is asked. */
    uint64_t all = UINT64_MAX;
    CHECK(mask(SIG_SETMASK, &all, NULL) == 0 && mask(SIG_SETMASK, &before, &blocked) == 0, "%s", "sigprocmask");
    CHECK(blocked == (all & ~(BIT(SIGKILL) | BIT(SIGSTOP))), "another mask: %lx", (long)blocked);
}

static long made_by_child[7];

/* As `posix_spawn` goes on: in its parent's memory, with descriptors and actions of its own. */
static int in_child(void *page) {
    struct action found, by_default = {.handler = (uintptr_t)SIG_DFL};
    (void)page;
    made_by_child[0] = action(SIGUSR1, NULL, &found) == 0 && found.handler == (uintptr_t)on_signal;
    made_by_child[1] = action(SIGUSR1, &by_default, NULL);
    made_by_child[2] = CALL(openat, AT_FDCWD, (long)"/dev/null", O_RDONLY, 0, 5, 6);
    made_by_child[3] = CALL(dup, made_by_child[2], 2, 3, 4, 5, 6);
    made_by_child[4] = CALL(close, made_by_child[2], 2, 3, 4, 5, 6);
    made_by_child[5] = CALL(access, (long)"/nowhere", R_OK, 3, 4, 5, 6);
    made_by_child[6] = action(SIGUSR1, NULL, &found) == 0 && found.handler == (uintptr_t)SIG_DFL;
    return 7;
}

static void child(char *page) {
    static _Alignas(16) char stack[256 * 1024];
    struct action found;
    int status;
    long next = CALL(openat, AT_FDCWD, (long)"/dev/null", O_RDONLY, 0, 5, 6);
    CHECK(next >= 0 && CALL(close, next, 2, 3, 4, 5, 6) == 0, "openat: %ld", next);
    memset(made_by_child, 0xff, sizeof made_by_child);
    pid_t id = clone(in_child, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, page);
    CHECK(id > 0 && waitpid(id, &status, 0) == id && WIFEXITED(status) && WEXITSTATUS(status) == 7, "%s", "the child has not ended as it should");
    CHECK(made_by_child[0] == 1 && made_by_child[1] == 0, "sigaction in a child: %ld, %ld", made_by_child[0], made_by_child[1]);
    CHECK(made_by_child[2] == next && made_by_child[3] > next && made_by_child[4] == 0, "descriptors of a child: %ld, %ld, %ld", made_by_child[2],
          made_by_child[3], made_by_child[4]);
    CHECK(made_by_child[5] == -ENOENT, "access in a child: %ld", made_by_child[5]);
    CHECK(made_by_child[6] == 1, "%s", "a child has its parent's action");
    /* Nothing of that is its parent's. */
    CHECK(action(SIGUSR1, NULL, &found) == 0 && found.handler == (uintptr_t)on_signal, "%s", "a child has changed its parent's action");
    CHECK(CALL(close, made_by_child[3], 2, 3, 4, 5, 6) == -EBADF && CALL(dup, made_by_child[3], 2, 3, 4, 5, 6) == -EBADF, "%s", "a child's descriptor is its parent's");
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    __builtin_cpu_init();
    wide = __builtin_cpu_supports("avx512bw") ? 64 : __builtin_cpu_supports("avx2") ? 32 : 16;
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED && mprotect(page + 4096, 4096, PROT_NONE) == 0, "%s", strerror(errno));
    char own[PATH_MAX] = "";
    CHECK(readlink("/proc/self/exe", own, sizeof own - 1) > 0, "%s", strerror(errno));
    CHECK(signal(SIGUSR1, on_signal) != SIG_ERR, "%s", strerror(errno));
    for (int i = 0; i < OFTEN; i++) {
        all(page, own);
        signals(page);
        child(page);
    }
    trial_hold();
    for (int i = 0; i < OFTEN; i++) {
        all(page, own);
        signals(page);
        child(page);
    }
    return trial_finish();
}
