/* Communicators of the same members whose collectives the ranks begin in different orders: one rank frees a duplicate, or
 * begins a nonblocking operation on it, many operations on the world before the others do.
 * trial: ranks=2,4 */
#include "../moving.h"

/* Operations on the world between the first rank's and the others' on the duplicate. */
#ifndef BETWEEN
#define BETWEEN 30
#endif

static void work(uint64_t round) {
    for (uint64_t i = 0; i < BETWEEN; i++) {
        uint64_t mine = round * BETWEEN + i + (uint64_t)trial_rank, sum = 0;
        MUST(MPI_Allreduce(&mine, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD));
        uint64_t ranks = (uint64_t)trial_size, expected = ranks * (round * BETWEEN + i) + ranks * (ranks - 1) / 2;
        CHECK(sum == expected, "round %d, operation %d: %d", (int)round, (int)i, (int)sum);
    }
}

static void freed(uint64_t round, int early) {
    MPI_Comm duplicate;
    MUST(MPI_Comm_dup(MPI_COMM_WORLD, &duplicate));
    if (early) MUST(MPI_Comm_free(&duplicate));
    work(round);
    if (!early) MUST(MPI_Comm_free(&duplicate));
}

static void pending(uint64_t round, int early, MPI_Comm duplicate) {
    MPI_Request request;
    int mine = 1 << trial_rank, all = 0;
    if (early) MUST(MPI_Iallreduce(&mine, &all, 1, MPI_INT, MPI_BOR, duplicate, &request));
    work(round);
    if (!early) MUST(MPI_Iallreduce(&mine, &all, 1, MPI_INT, MPI_BOR, duplicate, &request));
    MUST(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(all == (1 << trial_size) - 1, "round %d: %x", (int)round, all);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    MPI_Comm duplicate;
    MUST(MPI_Comm_dup(MPI_COMM_WORLD, &duplicate));
    uint64_t round = 0;
    do {
        int early = (int)(round / 2 % (uint64_t)trial_size) == trial_rank;
        if (round % 2) pending(round, early, duplicate);
        else freed(round, early);
        round++;
    } while (moving_agree(round, MPI_COMM_WORLD));
    MUST(MPI_Comm_free(&duplicate));
    return trial_finish();
}
