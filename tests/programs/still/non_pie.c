/* An executable that is not position-independent keeps its addresses, its data and its heap.
 * trial: ranks=2 flags=-no-pie,-fno-pie */
#include "../common.h"

static int table[1000] = {1, 2, 3};
static const char *words[] = {"alpha", "beta"};

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    CHECK((uintptr_t)&table < 0x100000000u && (uintptr_t)main < 0x100000000u, "at %p", (void *)table);
    for (int i = 0; i < 1000; i++) table[i] = i * trial_rank;
    char *block = malloc(100000);
    trial_fill(block, 100000, trial_rank);
    words[1] = "gamma";
    int (*call)(const char *, const char *) = strcmp, peer = 1 - trial_rank, got = -1;
    MUST(MPI_Send(&table[10], 1, MPI_INT, peer, 1, MPI_COMM_WORLD));
    trial_hold();
    for (int i = 0; i < 1000; i++) CHECK(table[i] == i * trial_rank, "element %d is %d", i, table[i]);
    CHECK(trial_differs(block, 100000, trial_rank) < 0, "the heap");
    CHECK(call(words[0], "alpha") == 0 && call(words[1], "gamma") == 0, "pointers");
    MUST(MPI_Recv(&got, 1, MPI_INT, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(got == 10 * peer, "got %d", got);
    return trial_finish();
}
