/* Does to its memory what a program may do, each to a part of its own, as soon as it is let go, every rank something else first: memory that a
 * restart has not brought back yet must not show the difference.
 * trial: ranks=3 */
#define _GNU_SOURCE
#include "../common.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

enum { PAGE = 4096, PAGES = 512, BYTES = PAGES * PAGE, WORDS = BYTES / 8, THREADS = 4 };
/* What comes last is what has to be waited for, most often. */
enum { SPARSE, LOCKED, GUARDED, READ, SEEN, THREADED, THROWN, FREED, REPLACED, MOVED, FORKED, PARTS };

static uint64_t *part[PARTS];

static uint64_t value(int which, size_t word) { return trial_mix((uint64_t)which * WORDS + word) | 1; }

/* Words of a part that are not as they were; each is to be there once. */
static size_t wrong(int which, size_t from, size_t to) {
    size_t found = 0;
    for (size_t word = from; word < to; word++) found += part[which][word] != value(which, word);
    return found;
}

static size_t set(int which, size_t from, size_t to) {
    size_t found = 0;
    for (size_t word = from; word < to; word++) found += part[which][word] != 0;
    return found;
}

static const size_t A = WORDS / 4, B = WORDS / 2;

#define SAME(which, from, to) CHECK(wrong(which, from, to) == 0, "part %d: %zu words are wrong", which, wrong(which, from, to))
#define ZERO(which, from, to) CHECK(set(which, from, to) == 0, "part %d: %zu words are set", which, set(which, from, to))
#define DONE(call) CHECK((long)(call) != -1, "%s: %s", #call, strerror(errno))

static void *map(void *at, size_t bytes, int flags) {
    void *memory = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    CHECK(memory != MAP_FAILED, "mmap: %s", strerror(errno));
    return memory;
}

static void *look(void *number) {
    size_t quarter = WORDS / THREADS, from = (size_t)number * quarter;
    SAME(THREADED, from, from + quarter);
    /* The others' pages too, backwards. */
    for (size_t page = PAGES; page-- > 0;) CHECK(part[THREADED][page * 512] == value(THREADED, page * 512), "page %zu", page);
    return NULL;
}

static void throw_away(void) {
    DONE(madvise(part[THROWN] + A, (B - A) * 8, MADV_DONTNEED));
    ZERO(THROWN, A, B);
    SAME(THROWN, 0, A);
    SAME(THROWN, B, WORDS);
    DONE(madvise(part[FREED] + A, (B - A) * 8, MADV_FREE));
    for (size_t word = A; word < B; word++) part[FREED][word] = value(FREED, word);
    SAME(FREED, 0, WORDS);
}

static void move(void) {
    uint64_t *moved = mremap(part[MOVED], BYTES, 2 * BYTES, MREMAP_MAYMOVE);
    CHECK(moved != MAP_FAILED, "mremap: %s", strerror(errno));
    part[MOVED] = moved;
    SAME(MOVED, 0, WORDS);
    ZERO(MOVED, WORDS, 2 * WORDS);
    DONE(mprotect(part[GUARDED] + A, (B - A) * 8, PROT_READ));
    SAME(GUARDED, 0, WORDS);
    DONE(munmap(part[REPLACED] + A, (B - A) * 8));
    map(part[REPLACED] + A, (B - A) * 8, MAP_FIXED);
    ZERO(REPLACED, A, B);
    SAME(REPLACED, B, WORDS);
    SAME(REPLACED, 0, A);
}

/* The kernel reads and writes for the program. */
static void by_the_kernel(void) {
    int ends[2];
    char text[100];
    memset(text, 7, sizeof text);
    DONE(pipe(ends));
    DONE(write(ends[1], text, sizeof text));
    char *to = (char *)(part[READ] + A) + 8;
    CHECK(read(ends[0], to, 96) == 96, "read: %s", strerror(errno));
    CHECK(to[0] == 7 && to[95] == 7, "what was read");
    SAME(READ, 0, A + 1);
    SAME(READ, A + 13, WORDS);
    CHECK(write(ends[1], part[SEEN] + A, 64) == 64, "write: %s", strerror(errno));
    uint64_t seen[8 + PAGE / 8];
    CHECK(read(ends[0], seen, 4) == 4, "the rest: %s", strerror(errno));
    CHECK(read(ends[0], seen, 64) == 64 && seen[7] == value(SEEN, A + 7), "what was written");
    struct iovec local = {seen, 64}, remote = {part[SEEN] + B, 64};
    CHECK(process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 64, "process_vm_readv: %s", strerror(errno));
    CHECK(seen[3] == value(SEEN, B + 3), "what was looked at");
    SAME(SEEN, 0, WORDS);
    close(ends[0]), close(ends[1]);
    DONE(mlock(part[LOCKED], 16 * PAGE));
    SAME(LOCKED, 0, WORDS);
}

static void in_threads(void) {
    pthread_t threads[THREADS];
    for (size_t number = 0; number < THREADS; number++) pthread_create(&threads[number], NULL, look, (void *)number);
    by_the_kernel();
    for (int number = 0; number < THREADS; number++) pthread_join(threads[number], NULL);
}

static void fork_one(void) {
    pid_t child = fork();
    if (child == 0) _exit(wrong(FORKED, 0, WORDS) ? 1 : 0);
    int status = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child, "fork: %s", strerror(errno));
    CHECK(status == 0, "the child found other memory: %x", status);
    SAME(FORKED, 0, WORDS);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    for (int which = 0; which < PARTS; which++) {
        part[which] = map(NULL, BYTES, 0);
        for (size_t word = 0; word < WORDS; word++)
            if (which != SPARSE || word % 5120 < 300) part[which][word] = value(which, word);
    }
    trial_hold();
    void (*acts[])(void) = {fork_one, throw_away, move, in_threads};
    for (int act = 0; act < 4; act++) acts[(trial_rank + act) % 4]();
    for (size_t page = 1; page < PAGES; page += 10) CHECK(part[SPARSE][page * 512] == 0, "page %zu is set", page);
    for (size_t word = 0; word < WORDS; word++)
        if (word % 5120 < 300) CHECK(part[SPARSE][word] == value(SPARSE, word), "word %zu", word);
    return trial_end();
}
