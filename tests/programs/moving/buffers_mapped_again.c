/* Messages of 8 bytes to 1 MB (the argument: another largest size) come from and go to memory that is used again, moved, or freed and mapped anew
 * at the same address: a network's library that keeps memory registered must notice.
 * trial: ranks=2,4 */
#include "../moving.h"
#include <sys/mman.h>

/* Every fiftieth word of a message, and its last: the ends of pages are among them. */
static uint64_t word(uint64_t round, int rank, size_t at) { return trial_mix(round * 1000003 + (uint64_t)rank * 7919 + at); }

static char *mapped(void *at, size_t bytes) {
    char *memory = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);
    CHECK(memory != MAP_FAILED, "%s", strerror(errno));
    return memory;
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    size_t most = argc > 1 ? strtoul(argv[1], NULL, 0) : 1 << 20, bytes = 8;
    int next = (trial_rank + 1) % trial_size, previous = (trial_rank + trial_size - 1) % trial_size;
    char *out = mapped(NULL, most), *in = mapped(NULL, most);
    for (uint64_t round = 0; moving_agree(round, MPI_COMM_WORLD); round++) {
        uint64_t *sent = (uint64_t *)out, *received = (uint64_t *)in;
        size_t words = bytes / 8;
        for (size_t at = 0; at < words; at += 50) sent[at] = word(round, trial_rank, at);
        sent[words - 1] = word(round, trial_rank, words - 1);
        MPI_Request both[2];
        MUST(MPI_Irecv(in, (int)bytes, MPI_BYTE, previous, 5, MPI_COMM_WORLD, &both[0]));
        MUST(MPI_Isend(out, (int)bytes, MPI_BYTE, next, 5, MPI_COMM_WORLD, &both[1]));
        MUST(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
        for (size_t at = 0; at < words; at += 50)
            CHECK(received[at] == word(round, previous, at), "round %d: word %zu of %zu", (int)round, at, words);
        CHECK(received[words - 1] == word(round, previous, words - 1), "round %d: the last of %zu words", (int)round, words);
        bytes = bytes * 2 > most ? 8 : bytes * 2;
        switch (round % 3) {
            case 0: break;
            case 1: {
                CHECK(munmap(in, most) == 0 && munmap(out, most) == 0, "%s", strerror(errno));
                in = mapped(in, most), out = mapped(out, most);
                break;
            }
            default: {
                /* What was received lies somewhere else now, and there is other memory at its address. */
                char *room = mapped(NULL, most), *old = in;
                in = mremap(in, most, most, MREMAP_MAYMOVE | MREMAP_FIXED, room);
                CHECK(in == room && ((uint64_t *)in)[words - 1] == word(round, previous, words - 1), "moved: %s", strerror(errno));
                munmap(out, most);
                out = mapped(old, most);
            }
        }
    }
    return trial_finish();
}
