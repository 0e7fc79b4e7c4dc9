/* Mappings of every sort keep contents, protection and sharing: guard pages, read-only and executable pages, shared and
 * private file mappings, shared anonymous memory, the heap's end, holes punched into a mapping.
 * trial: ranks=2 */
#include "../common.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#define PAGE 4096

static sigjmp_buf escape;

static void fault(int number) {
    (void)number;
    siglongjmp(escape, 1);
}

static int faults(volatile char *at, int write) {
    if (sigsetjmp(escape, 1)) return 1;
    if (write) *at = 1;
    else (void)*at;
    return 0;
}

static char *map(size_t pages, int protection, int flags, int file) {
    char *at = mmap(NULL, pages * PAGE, protection, flags, file, 0);
    CHECK(at != MAP_FAILED, "mmap: %s", strerror(errno));
    return at;
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    struct sigaction action = {.sa_handler = fault};
    sigaction(SIGSEGV, &action, NULL);
    char path[PATH_MAX];
    trial_own_file(path, sizeof path, "mapped");
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    static char page[PAGE];
    for (int i = 0; i < 4; i++) {
        trial_fill(page, PAGE, 100 + i);
        CHECK(write(file, page, PAGE) == PAGE, "write");
    }
    char *read_only = map(2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    trial_fill(read_only, 2 * PAGE, 1);
    mprotect(read_only, 2 * PAGE, PROT_READ);
    char *guarded = map(3, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    trial_fill(guarded, 3 * PAGE, 2);
    mprotect(guarded + PAGE, PAGE, PROT_NONE);
    char *shared = map(4, PROT_READ | PROT_WRITE, MAP_SHARED, file);
    trial_fill(shared + PAGE, PAGE, 3);
    char *private = map(4, PROT_READ | PROT_WRITE, MAP_PRIVATE, file);
    trial_fill(private + 2 * PAGE, PAGE, 4);
    char *anonymous = map(2, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
    trial_fill(anonymous, 2 * PAGE, 5);
    char *holed = map(8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    trial_fill(holed, 8 * PAGE, 6);
    munmap(holed + 2 * PAGE, PAGE);
    madvise(holed + 5 * PAGE, PAGE, MADV_DONTNEED);
    /* mov eax, 42 + rank; ret */
    unsigned char code[] = {0xb8, (unsigned char)(42 + trial_rank), 0, 0, 0, 0xc3};
    char *executable = map(1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    memcpy(executable, code, sizeof code);
    mprotect(executable, PAGE, PROT_READ | PROT_EXEC);
    char *hidden = map(1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    trial_fill(hidden, PAGE, 7);
    mprotect(hidden, PAGE, PROT_NONE);
    char *end = sbrk(64 << 10);
    trial_fill(end, 64 << 10, 8);
    char *lazy = map(1 << 18, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    lazy[12345 * PAGE] = 77;

    trial_hold();

    CHECK(trial_differs(read_only, 2 * PAGE, 1) < 0, "read-only page");
    CHECK(faults(read_only, 1), "a read-only page can be written");
    mprotect(read_only, 2 * PAGE, PROT_READ | PROT_WRITE);
    CHECK(!faults(read_only, 1), "a page made writable cannot be written");
    CHECK(faults(guarded + PAGE, 0), "a guard page can be read");
    mprotect(guarded + PAGE, PAGE, PROT_READ);
    CHECK(trial_differs(guarded, 3 * PAGE, 2) < 0, "around and behind the guard");
    CHECK(trial_differs(shared, PAGE, 100) < 0 && trial_differs(shared + PAGE, PAGE, 3) < 0, "shared file mapping");
    CHECK(trial_differs(private + PAGE, PAGE, 3) < 0 || trial_differs(private + PAGE, PAGE, 101) < 0, "private, unwritten");
    CHECK(trial_differs(private + 2 * PAGE, PAGE, 4) < 0, "private file mapping, written");
    trial_fill(shared + 3 * PAGE, PAGE, 9);
    CHECK(pread(file, page, PAGE, 3 * PAGE) == PAGE && trial_differs(page, PAGE, 9) < 0, "the file does not see a write");
    CHECK(pread(file, page, PAGE, 2 * PAGE) == PAGE && trial_differs(page, PAGE, 102) < 0, "a private write is in the file");
    CHECK(trial_differs(anonymous, 2 * PAGE, 5) < 0, "shared anonymous memory");
    CHECK(trial_differs(holed, 2 * PAGE, 6) < 0, "before the hole");
    CHECK(trial_differs(holed + 6 * PAGE, 2 * PAGE, 6 + 6 * PAGE / 8) < 0, "behind the hole");
    CHECK(faults(holed + 2 * PAGE, 0), "the hole is mapped");
    CHECK(holed[5 * PAGE] == 0, "a dropped page is not zero");
    CHECK(((int (*)(void))executable)() == 42 + trial_rank, "generated code");
    mprotect(hidden, PAGE, PROT_READ);
    CHECK(trial_differs(hidden, PAGE, 7) < 0, "a page that could not be read while it was saved");
    CHECK(trial_differs(end, 64 << 10, 8) < 0, "memory from sbrk");
    CHECK(sbrk(0) >= (void *)(end + (64 << 10)), "the heap ends at %p", sbrk(0));
    char *more = sbrk(1 << 20);
    CHECK(more != (void *)-1, "sbrk: %s", strerror(errno));
    memset(more, 1, 1 << 20);
    CHECK(lazy[12345 * PAGE] == 77 && lazy[12346 * PAGE] == 0, "lazy memory");
    munmap(lazy, (size_t)PAGE << 18);
    close(file);
    unlink(path);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
