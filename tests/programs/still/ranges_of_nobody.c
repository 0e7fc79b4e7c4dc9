/* Calls about addresses where the program has nothing, or half a range of its own, change nothing there and say what the kernel says of unmapped memory. Another
 * program's memory may lie there, if that one runs this: it stays as it is.
 * trial: ranks=2 */
#include "../common.h"
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#define PAGE 4096
#define OPEN (PROT_READ | PROT_WRITE)

struct range {
    unsigned long start, end;
    char permissions[8];
};

/* The n-th range of the lower half's own program file; one that was just unmapped, where there is no lower half. Returns 0 if there is none. */
static int nobodys(int n, struct range *found) {
    char line[PATH_MAX + 128];
    FILE *maps = fopen("/proc/self/maps", "r");
    int is_there = 0, any = 0;
    while (maps && !is_there && fgets(line, sizeof line, maps)) {
        if (!strstr(line, "/stillpoint-lower")) continue;
        any = 1;
        is_there = sscanf(line, "%lx-%lx %7s", &found->start, &found->end, found->permissions) == 3 && n-- == 0;
    }
    if (maps) fclose(maps);
    if (any || n > 3) return is_there;
    char *gone = mmap(NULL, 4 * PAGE, OPEN, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(gone, 4 * PAGE);
    *found = (struct range){(unsigned long)gone + PAGE, (unsigned long)gone + 2 * PAGE, "----"};
    return 1;
}

/* Whether a range is as it was. */
static int is_still(const struct range *range) {
    char line[PATH_MAX + 128], permissions[8];
    unsigned long start, end;
    FILE *maps = fopen("/proc/self/maps", "r");
    int found = 0;
    while (maps && fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %7s", &start, &end, permissions) == 3 && start <= range->start && range->end <= end)
            found = strcmp(permissions, range->permissions) == 0;
    if (maps) fclose(maps);
    return found || range->permissions[0] == '-';
}

#define SAYS(error, call) \
    do { \
        errno = 0; \
        long result = (long)(call); \
        int code = result == -1 ? errno : 0; \
        CHECK(code == (error), "%s", strerror(code)); \
    } while (0)

static void try_all(const struct range *range) {
    void *at = (void *)range->start;
    size_t bytes = range->end - range->start;
    char *elsewhere = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned long nodes = 1;
    SAYS(EFAULT, mremap(at, bytes, 2 * bytes, MREMAP_MAYMOVE));
    SAYS(EFAULT, mremap(at, bytes, bytes + PAGE, 0));
    SAYS(EFAULT, mremap(at, bytes, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere));
    SAYS(EFAULT, mremap(at, 0, PAGE, MREMAP_MAYMOVE));
    SAYS(EINVAL, mremap((char *)at + 1, bytes, PAGE, MREMAP_MAYMOVE));
    SAYS(EINVAL, mremap(at, bytes, 0, MREMAP_MAYMOVE));
    SAYS(0, munmap(at, bytes));
    SAYS(EINVAL, munmap((char *)at + 1, bytes));
    SAYS(ENOMEM, mprotect(at, bytes, PROT_NONE));
    SAYS(ENOMEM, mprotect(at, bytes, OPEN));
    SAYS(ENOMEM, syscall(SYS_pkey_mprotect, at, bytes, PROT_NONE, -1));
    SAYS(ENOMEM, madvise(at, bytes, MADV_DONTNEED));
    SAYS(ENOMEM, madvise(at, bytes, MADV_DONTFORK));
    SAYS(EINVAL, madvise(at, bytes, 12345));
    SAYS(EINVAL, madvise((char *)at + 1, bytes, MADV_DONTNEED));
    SAYS(ENOMEM, mlock(at, bytes));
    SAYS(ENOMEM, mlock((char *)at + 1, 1));
    SAYS(ENOMEM, mlock2(at, bytes, MLOCK_ONFAULT));
    SAYS(EINVAL, mlock2(at, bytes, 64));
    SAYS(ENOMEM, munlock(at, bytes));
    SAYS(ENOMEM, msync(at, bytes, MS_ASYNC));
    SAYS(EINVAL, msync(at, bytes, 64));
    SAYS(EINVAL, remap_file_pages(at, bytes, 0, 0, 0));
    SAYS(EINVAL, shmdt(at));
    errno = 0;
    long bound = syscall(SYS_mbind, at, bytes, 2 /* MPOL_BIND */, &nodes, 64, 0);
    CHECK(bound == -1 && (errno == EFAULT || errno == ENOSYS || errno == EPERM), "mbind: %s", strerror(errno));
}

/* A page of the program's own right before it. */
static void try_half(const struct range *range) {
    char *own = (char *)range->start - PAGE, *moved = NULL;
    size_t bytes = range->end - range->start + PAGE;
    void *got = mmap(own, PAGE, OPEN, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (got != own) return;
    own[7] = 7;
    SAYS(EFAULT, moved = mremap(own, bytes, 2 * bytes, MREMAP_MAYMOVE));
    CHECK(moved == MAP_FAILED && own[7] == 7, "moved half of it");
    SAYS(ENOMEM, msync(own, bytes, MS_ASYNC));
    SAYS(ENOMEM, mprotect(own, bytes, PROT_READ));
    CHECK(mprotect(own, PAGE, OPEN) == 0, "mprotect: %s", strerror(errno));
    SAYS(ENOMEM, madvise(own, bytes, MADV_DONTNEED));
    CHECK(own[7] == 0, "the own half was not given up");
    own[7] = 8;
    SAYS(0, munmap(own, bytes));
    CHECK(mmap(own, PAGE, OPEN, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == own && own[7] == 0, "the own half was not unmapped");
    munmap(own, PAGE);
}

static void try_ranges(void) {
    struct range range;
    for (int n = 0; nobodys(n, &range); n++) {
        try_all(&range);
        try_half(&range);
        CHECK(is_still(&range), "%lx-%lx is not as it was", range.start, range.end);
    }
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    try_ranges();
    trial_hold();
    try_ranges();
    /* Long ranges of the program's own, with holes. */
    size_t bytes = 5ul << 30;
    char *whole = mmap(NULL, bytes, OPEN, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(whole != MAP_FAILED, "mmap: %s", strerror(errno));
    whole[0] = 1, whole[bytes - 1] = 2;
    SAYS(0, madvise(whole, bytes, MADV_DONTNEED));
    CHECK(whole[0] == 0 && whole[bytes - 1] == 0, "what was given up is there");
    SAYS(0, munmap(whole + PAGE, PAGE));
    SAYS(ENOMEM, mprotect(whole, bytes, PROT_READ));
    SAYS(ENOMEM, madvise(whole, bytes, MADV_DONTNEED));
    SAYS(0, munmap(whole, bytes));
    SAYS(ENOMEM, msync(whole, PAGE, MS_ASYNC));
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
