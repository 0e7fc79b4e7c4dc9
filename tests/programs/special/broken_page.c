/* Has a page that cannot be read: broken memory, as userfaultfd makes it for tests (UFFDIO_POISON, Linux 6.6). Where the kernel makes none, it says so by a file.
 * Afterwards it writes the page anew, and has what it had.
 * trial: ranks=1 */
#include "../common.h"
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { PAGE = 4096, PAGES = 16, BROKEN = 5 };

struct poison {
    uint64_t start, bytes, mode, updated;
};

static int poison(char *page) {
    int faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
    struct uffdio_api api = {.api = UFFD_API, .features = 1 << 14 /* UFFD_FEATURE_POISON */};
    struct uffdio_register one = {.range = {(uintptr_t)page, PAGE}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    struct poison wanted = {(uintptr_t)page, PAGE, 0, 0};
    int done = faults >= 0 && ioctl(faults, UFFDIO_API, &api) == 0 && ioctl(faults, UFFDIO_REGISTER, &one) == 0
        && ioctl(faults, _IOWR(0xaa, 8, struct poison), &wanted) == 0;
    close(faults);
    return done;
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    char *memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int page = 0; page < PAGES; page++)
        if (page != BROKEN) memset(memory + page * PAGE, page + 1, PAGE);
    if (!poison(memory + BROKEN * PAGE)) trial_mark("none");
    trial_mark("made");
    char path[PATH_MAX];
    trial_path(path, sizeof path, "anew");
    while (access(path, F_OK) != 0) usleep(2000);
    mmap(memory + BROKEN * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    memset(memory + BROKEN * PAGE, BROKEN + 1, PAGE);
    trial_hold();
    for (int page = 0; page < PAGES; page++) CHECK(memory[page * PAGE + 100] == page + 1, "page %d", page);
    return trial_finish();
}
