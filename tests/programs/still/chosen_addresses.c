/* Memory at addresses that the program chooses, all over the address space, is its own: fixed, hinted, moved, attached; with holes,
 * without room in the image where nothing was touched, at the same places after a restart.
 * trial: ranks=2 most_bytes=12000000 */
#include "../common.h"
#include <sys/mman.h>
#include <sys/shm.h>

#define BYTES (1u << 18)
#define ANONYMOUS (MAP_PRIVATE | MAP_ANONYMOUS)
#define OPEN (PROT_READ | PROT_WRITE)
#define TIB (1ul << 40)

static const uintptr_t places[] = {0x200000000,    0x800000000,    0x1000000000,   0xc000000000,   0x0fff00000000, 0x100000000000,
                                   0x1fff00000000, 0x29ffffe00000, 0x2b0000000000, 0x400000000000, 0x54ff00000000, 0x570000000000,
                                   0x600000000000, 0x6fff00000000, 0x7b0000000000};
#define PLACES (sizeof places / sizeof *places)

static char *map(uintptr_t at, size_t bytes, int protection, int flags) {
    void *got = mmap((void *)at, bytes, protection, ANONYMOUS | flags, -1, 0);
    CHECK(got == (void *)at, "%#lx: %p, %s", at, got, got == MAP_FAILED ? strerror(errno) : "elsewhere");
    return got;
}

static int is_free(uintptr_t at) {
    void *got = mmap((void *)at, 4096, PROT_NONE, ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == MAP_FAILED) return 0;
    munmap(got, 4096);
    return got == (void *)at;
}

static void check(void) {
    for (size_t i = 0; i < PLACES; i++) {
        char *at = (char *)places[i];
        CHECK(trial_differs(at, BYTES / 4, trial_rank + i) < 0, "contents at %p", at);
        CHECK(is_free(places[i] + BYTES / 4) && !is_free(places[i]), "the hole at %p", at);
        CHECK(trial_differs(at + BYTES / 2, BYTES / 2, trial_rank + i + 100) < 0, "contents behind the hole at %p", at);
        CHECK(is_free(places[i] + BYTES), "the end of %p", at);
    }
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    for (size_t i = 0; i < PLACES; i++) {
        CHECK(is_free(places[i]), "%#lx", places[i]);
        char *at = map(places[i], BYTES, OPEN, i % 3 == 0 ? MAP_FIXED_NOREPLACE : i % 3 == 1 ? MAP_FIXED : 0);
        trial_fill(at, BYTES / 4, trial_rank + i);
        void *again = mmap(at, 4096, OPEN, ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        CHECK(again == MAP_FAILED && errno == EEXIST, "taken: %p", again);
        again = mmap(at, 4096, OPEN, ANONYMOUS, -1, 0);
        CHECK(again != MAP_FAILED && again != at, "a hint that is taken: %p", again);
        munmap(again, 4096);
        map(places[i] + BYTES / 2, BYTES / 2, OPEN, MAP_FIXED);
        trial_fill(at + BYTES / 2, BYTES / 2, trial_rank + i + 100);
        CHECK(munmap(at + BYTES / 4, BYTES / 4) == 0, "a hole: %s", strerror(errno));
    }
    /* Reservations that are never touched, and one page in the middle of another. */
    map(0x2c0000000000, 8 * TIB, PROT_NONE, MAP_NORESERVE | MAP_FIXED);
    char *anywhere = mmap(NULL, 8 * TIB, PROT_NONE, ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(anywhere != MAP_FAILED, "8 TiB anywhere: %s", strerror(errno));
    char *sparse = map(0x620000000000, TIB, OPEN, MAP_NORESERVE | MAP_FIXED_NOREPLACE);
    sparse[TIB / 2] = 5;
    /* Moved to a chosen place, and made smaller, larger and read-only there. */
    char *moving = mmap(NULL, BYTES, OPEN, ANONYMOUS, -1, 0);
    trial_fill(moving, BYTES, 7);
    char *moved = mremap(moving, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)0x640000000000);
    CHECK(moved == (char *)0x640000000000, "moved: %s", strerror(errno));
    CHECK(mremap(moved, BYTES, BYTES / 2, 0) == moved && is_free((uintptr_t)moved + BYTES / 2), "smaller");
    CHECK(mremap(moved, BYTES / 2, 2 * BYTES, 0) == moved, "larger: %s", strerror(errno));
    moved[2 * BYTES - 1] = 9;
    CHECK(mprotect(moved, BYTES, PROT_READ) == 0, "read-only: %s", strerror(errno));
    char *back = mremap(map(0x660000000000, BYTES, OPEN, 0), BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, moving);
    CHECK(back == moving && is_free(0x660000000000), "moved back");
    int id = shmget(IPC_PRIVATE, BYTES, IPC_CREAT | 0600);
    char *attached = shmat(id, (void *)0x650000000000, 0), *other = shmat(id, (void *)0x650100000000, 0);
    CHECK(attached == (char *)0x650000000000 && other != (void *)-1, "attached: %s", strerror(errno));
    shmctl(id, IPC_RMID, NULL);
    trial_fill(attached, BYTES, 8);
    CHECK(shmdt(other) == 0 && is_free(0x650100000000) && is_free(0x650100000000 + BYTES - 4096), "detached");
    check();

    trial_hold();

    check();
    CHECK(sparse[TIB / 2] == 5 && sparse[0] == 0, "sparse");
    CHECK(trial_differs(moved, BYTES / 2, 7) < 0 && moved[2 * BYTES - 1] == 9, "moved");
    CHECK(trial_differs(attached, BYTES, 8) < 0, "attached");
    CHECK(mprotect(moved, BYTES, OPEN) == 0, "writable again: %s", strerror(errno));
    moved[0] = 1;
    CHECK(!is_free(0x2c0000000000) && munmap((void *)0x2c0000000000, 8 * TIB) == 0 && is_free(0x2c0000000000), "the reservation");
    CHECK(munmap(anywhere, 8 * TIB) == 0, "the other reservation");
    for (size_t i = 0; i < PLACES; i++) CHECK(munmap((void *)places[i], BYTES) == 0 && is_free(places[i]), "%#lx", places[i]);
    shmdt(attached);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
