/* A private mapping of a file shows what is written to the file, on pages that the program has not written to; on the others it shows what the program wrote, even if
 * that was what the file had. So it does behind the file's end, once the file is longer.
 * trial: ranks=2 */
#include "../common.h"
#include "../signal_at.h"
#include <signal.h>
#include <sys/mman.h>

enum { PAGE = 4096, PAGES = 8, MORE = 4 };

static int is_all(const char *page, char value) {
    for (int i = 0; i < PAGE; i++)
        if (page[i] != value) return 0;
    return 1;
}

static char *map(int file, int page, int pages, int protection) {
    char *at = mmap(NULL, (size_t)pages * PAGE, protection, MAP_PRIVATE, file, (off_t)page * PAGE);
    CHECK(at != MAP_FAILED, "mmap: %s", strerror(errno));
    return at;
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    signal(SIGBUS, caught);
    char path[PATH_MAX], page[PAGE];
    trial_own_file(path, sizeof path, "mapped");
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    for (int i = 0; i < PAGES; i++) {
        memset(page, i, PAGE);
        CHECK(write(file, page, PAGE) == PAGE, "%s: %s", path, strerror(errno));
    }
    char *whole = map(file, 0, PAGES, PROT_READ | PROT_WRITE), *part = map(file, 3, 2, PROT_READ), *longer = map(file, 0, PAGES + MORE, PROT_READ | PROT_WRITE),
         *hidden = map(file, 0, PAGES, PROT_NONE);
    close(file);
    /* Other bytes, the same bytes, and zeros where there are zeros. */
    memset(whole + PAGE, 77, PAGE), memset(whole + 2 * PAGE, 2, PAGE), memset(whole, 0, PAGE), memset(longer + 5 * PAGE, 88, PAGE);
    CHECK(whole[4 * PAGE] == 4 && part[0] == 3 && signal_at(longer + PAGES * PAGE) == SIGBUS, "before");

    trial_hold();
    CHECK(signal_at(longer + PAGES * PAGE) == SIGBUS, "there is something behind the file");
    for (int i = 0; i < PAGES; i++) CHECK(is_all(longer + i * PAGE, i == 5 ? 88 : (char)i), "page %d of the longer one", i);
    file = open(path, O_RDWR | O_CLOEXEC);
    for (int i = 0; i < PAGES + 1; i++) {
        memset(page, 100 + i, PAGE);
        CHECK(pwrite(file, page, PAGE, (off_t)i * PAGE) == PAGE, "%s: %s", path, strerror(errno));
    }
    mprotect(hidden, PAGES * PAGE, PROT_READ);
    for (int i = 0; i < PAGES; i++) {
        char own = i == 0 ? 0 : i == 1 ? 77 : i == 2 ? 2 : (char)(100 + i);
        CHECK(is_all(whole + i * PAGE, own), "page %d: %d", i, whole[i * PAGE]);
        CHECK(is_all(longer + i * PAGE, i == 5 ? 88 : (char)(100 + i)), "page %d of the longer one: %d", i, longer[i * PAGE]);
        CHECK(is_all(hidden + i * PAGE, (char)(100 + i)), "page %d of the hidden one: %d", i, hidden[i * PAGE]);
    }
    CHECK(is_all(part, 103) && is_all(part + PAGE, 104), "the part: %d, %d", part[0], part[PAGE]);
    CHECK(signal_at(longer + PAGES * PAGE) == 0 && is_all(longer + PAGES * PAGE, 100 + PAGES), "the file is longer");
    CHECK(signal_at(longer + (PAGES + 1) * PAGE) == SIGBUS, "there is something behind the longer file");
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
