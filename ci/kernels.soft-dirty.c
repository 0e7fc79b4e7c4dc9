/* Whether a kernel's soft-dirty bits tell every page that was written to (Documentation/admin-guide/mm/soft-dirty.rst): the same ways in which
 * `coordinator/tracking` tries a mechanism. Each line says what was done and whether it is seen. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, TABLE = 2 << 20, PIECE = 16 * PAGE, BOTH = PROT_READ | PROT_WRITE, OWN = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };

static int entries;

static int is_dirty(char *page) {
    uint64_t entry = 0;
    if (pread(entries, &entry, sizeof entry, (off_t)((uintptr_t)page / PAGE * sizeof entry)) != sizeof entry) return -1;
    return entry >> 55 & 1;
}

static void clear(void) {
    int descriptor = open("/proc/self/clear_refs", O_WRONLY);
    if (descriptor < 0 || write(descriptor, "4", 1) != 1) perror("clear_refs");
    close(descriptor);
}

static void say(const char *what, char *page) { printf("%s: %s\n", what, is_dirty(page) == 1 ? "seen" : "MISSED"); }

int main(void) {
    entries = open("/proc/self/pagemap", O_RDONLY);
    char *area = mmap(NULL, 5 * TABLE, BOTH, OWN, -1, 0);
    if (entries < 0 || area == MAP_FAILED) return 1;
    area = (char *)(((uintptr_t)area + TABLE - 1) / TABLE * TABLE);
    madvise(area, 4 * TABLE, MADV_NOHUGEPAGE);
    char *from = area, *to = area + TABLE;
    /* Two pieces, and room for a third. */
    char *first = mmap(NULL, 4 * PIECE, BOTH, OWN, -1, 0), *second = first + PIECE, *third = second + PIECE;
    if (first == MAP_FAILED || mprotect(third, 2 * PIECE, PROT_NONE) != 0) return 1;
    memset(from, 1, 2 * TABLE);
    memset(first, 1, 2 * PIECE);
    clear();
    from[0] = 2;
    if (is_dirty(from) != 1 || is_dirty(from + PAGE) != 0) {
        printf("not there\n");
        return 0;
    }
    say("written to", from);
    clear();
    madvise(to, PAGE, MADV_DONTNEED);
    volatile char zero = to[0];
    (void)zero;
    say("dropped and read (madvise)", to);
    clear();
    if (mremap(from, TABLE, TABLE, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to) return 1;
    say("moved (mremap), a whole page table", to + 3 * PAGE);
    clear();
    mprotect(first, PIECE, PROT_NONE);
    mmap(third, PIECE, BOTH, OWN | MAP_FIXED, -1, 0);
    mprotect(second, PIECE, PROT_READ);
    mprotect(second, PIECE, BOTH);
    second[0] = 2;
    mprotect(first, PIECE, BOTH);
    say("written to, then joined with its neighbour (mprotect)", second);
    return 0;
}
