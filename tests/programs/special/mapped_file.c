/* Has a large file mapped privately: all of it to be read, the beginning once more to be written to, the end with pages behind it. What it has not
 * written to must be what is in the file, also where it looks for the first time; what it has, what it wrote: one page with zeros. Its argument is the file, of
 * words that count up from 1. A second one is a library to load. Where the harness has made a file `kept` the memory need not be the file's again.
 * trial: ranks=2 flags=-ldl library=counter.c */
#include "../common.h"
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>

enum { PAGE = 4096, WORDS = PAGE / 8, HEAD = 1 << 20 };

static uint64_t *map(int file, size_t from, size_t bytes, int protection) {
    void *place = mmap(NULL, bytes, protection, MAP_PRIVATE, file, (off_t)from);
    CHECK(place != MAP_FAILED, "mmap: %s", strerror(errno));
    return place;
}

/* Whether a page holds the file's words. */
static int is_files(const uint64_t *words, size_t page) {
    for (size_t i = 0; i < WORDS; i++)
        if (words[i] != page * WORDS + i + 1) return 0;
    return 1;
}

static int is_all(const uint64_t *words, uint64_t value) {
    for (size_t i = 0; i < WORDS; i++)
        if (words[i] != value) return 0;
    return 1;
}

/* Whether there is anything to be read. */
static int is_there(const void *address) {
    char byte;
    struct iovec here = {&byte, 1}, there = {(void *)address, 1};
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1;
}

/* Whether /proc/self/maps shows a name at an address. */
static int shows(const void *address, const char *name) {
    char line[PATH_MAX + 128];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long start, end;
        if (sscanf(line, "%lx-%lx", &start, &end) == 2 && start <= (unsigned long)address && (unsigned long)address < end)
            found = strstr(line, name) != NULL;
    }
    if (maps) fclose(maps);
    return found;
}

static uint64_t *head;

static void check_head(const char *when) {
    CHECK(is_files(head, 0) && is_files(head + 4 * WORDS, 4), "pages that were not written to, %s", when);
    CHECK(is_all(head + 3 * WORDS, 77), "the page that was written to, %s", when);
    CHECK(is_all(head + 5 * WORDS, 0), "the page of zeros, %s", when);
    CHECK(is_files(head + 9 * WORDS, 9), "the page that was dropped, %s", when);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int file = open(argc > 1 ? argv[1] : "", O_RDONLY | O_CLOEXEC);
    struct stat about;
    CHECK(file >= 0 && fstat(file, &about) == 0, "%s", strerror(errno));
    if (file < 0) return 1;
    size_t bytes = (size_t)about.st_size / PAGE * PAGE, pages = bytes / PAGE;
    uint64_t *whole = map(file, 0, bytes, PROT_READ);
    head = map(file, 0, HEAD, PROT_READ | PROT_WRITE);
    uint64_t *tail = map(file, bytes - PAGE, 3 * PAGE, PROT_READ | PROT_WRITE);
    uint64_t *hidden = map(file, 0, 4 * PAGE, PROT_READ | PROT_WRITE);
    close(file);
    for (size_t page = 0; page < pages; page += 1000) CHECK(is_files(whole + page * WORDS, page), "page %zu before", page);
    for (size_t i = 0; i < WORDS; i++) {
        head[3 * WORDS + i] = 77;
        head[5 * WORDS + i] = 0;
        head[9 * WORDS + i] = 99;
        hidden[2 * WORDS + i] = 55;
    }
    madvise(head + 9 * WORDS, PAGE, MADV_DONTNEED);
    mprotect(hidden, 4 * PAGE, PROT_NONE);
    check_head("before");
    int (*count_up)(int) = NULL;
    void *library = argc > 2 ? dlopen(argv[2], RTLD_NOW) : NULL;
    CHECK(argc < 3 || library, "dlopen: %s", dlerror());
    if (library) {
        count_up = (int (*)(int))dlsym(library, "count_up");
        CHECK(count_up(1) == 101, "counting before");
    }
    trial_hold();
    check_head("after");
    for (size_t page = 0; page < pages; page++)
        if (!is_files(whole + page * WORDS, page)) {
            CHECK(0, "page %zu", page);
            break;
        }
    CHECK(is_files(tail, pages - 1), "the last page");
    mprotect(hidden, 4 * PAGE, PROT_READ);
    CHECK(is_files(hidden, 0) && is_all(hidden + 2 * WORDS, 55) && is_files(hidden + 3 * WORDS, 3), "what was hidden");
    char kept[PATH_MAX];
    trial_path(kept, sizeof kept, "kept");
    if (access(kept, F_OK) != 0) {
        CHECK(!is_there((char *)tail + 2 * PAGE), "there is something behind the file");
        CHECK(shows(whole, argv[1]) && shows(head, argv[1]), "the file is not shown");
        madvise(head + 3 * WORDS, 3 * PAGE, MADV_DONTNEED);
        CHECK(is_files(head + 3 * WORDS, 3) && is_files(head + 5 * WORDS, 5), "what was dropped is not what is in the file");
    }
    CHECK(!count_up || count_up(1) == 102, "the library has counted to %d", count_up(0));
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
