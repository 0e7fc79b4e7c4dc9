/* Receives a large message into memory that it has received one into before, so that a network device may write it without a page fault: once before
 * it is ready, once when the file `step` is there. With the argument `tracked` it asks the kernel (Linux 6.7) whether the pages of the second message
 * were written to, and prints how many of how many; that is done without Stillpoint.
 * Rank 0 sends.
 * trial: ranks=2 */
#include "../common.h"
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define BYTES (4u << 20)
#define PAGES (BYTES / 4096)

/* linux/fs.h and linux/userfaultfd.h since Linux 6.7. */
struct region { uint64_t start, end, categories; };
struct scan { uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages, inverted, mask, anyof, returned; };
#define SCAN _IOWR('f', 16, struct scan)
#define PROTECTS_AND_CHECKS 3
#define WRITTEN 2
#define WP_ASYNC (1 << 15)

static struct region regions[PAGES];

static long written(int pages, char *memory) {
    struct scan scan = {.size = sizeof scan, .flags = PROTECTS_AND_CHECKS, .start = (uintptr_t)memory, .end = (uintptr_t)memory + BYTES,
                        .vec = (uintptr_t)regions, .vec_len = PAGES, .mask = WRITTEN, .returned = WRITTEN};
    long found = ioctl(pages, SCAN, &scan), sum = 0;
    CHECK(found >= 0, "PAGEMAP_SCAN: %s", strerror(errno));
    for (long i = 0; i < found; i++) sum += (long)(regions[i].end - regions[i].start) / 4096;
    return sum;
}

static void exchanged(char *memory, int step) {
    if (trial_rank == 0) {
        trial_fill(memory, BYTES, 100 + step);
        MUST(MPI_Send(memory, BYTES, MPI_BYTE, 1, step, MPI_COMM_WORLD));
    } else if (trial_rank == 1) {
        MUST(MPI_Recv(memory, BYTES, MPI_BYTE, 0, step, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
}

static int stepped(void) {
    char path[PATH_MAX];
    trial_path(path, sizeof path, "step");
    return !getenv("TRIAL_DIR") || access(path, F_OK) == 0;
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int tracked = argc > 1 && strcmp(argv[1], "tracked") == 0, faults = -1, pages = -1;
    char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED, "%s", strerror(errno));
    memset(memory, 0x11, BYTES);
    for (int step = 0; step < 3; step++) exchanged(memory, step);
    if (tracked && trial_rank == 1) {
        struct uffdio_api api = {.api = UFFD_API, .features = WP_ASYNC};
        struct uffdio_register all = {.range = {(uintptr_t)memory, BYTES}, .mode = UFFDIO_REGISTER_MODE_WP};
        faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | 1);
        pages = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
        CHECK(ioctl(faults, UFFDIO_API, &api) == 0 && ioctl(faults, UFFDIO_REGISTER, &all) == 0, "userfaultfd: %s", strerror(errno));
        written(pages, memory);
        memory[0] = memory[0];
        *(volatile char *)(memory + 8192) = memory[8192];
        CHECK(written(pages, memory) >= 1, "a write of the processor is not seen");
    }
    trial_ready();
    while (!stepped()) usleep(2000);
    exchanged(memory, 3);
    trial_mark("stepped");
    if (tracked && trial_rank == 1) printf("the kernel saw %ld of %u pages written to\n", written(pages, memory), PAGES);
    trial_wait();
    if (trial_rank < 2) CHECK(trial_differs(memory, BYTES, 103) < 0, "wrong from byte %ld on", trial_differs(memory, BYTES, 103));
    return trial_finish();
}
