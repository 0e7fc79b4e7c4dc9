/* Accumulates of pairs with gaps, in a window of MPI's memory: by all at once, before the checkpoint and after it.
 * trial: ranks=2,3 */
#include "../common.h"

enum { PAIRS = 40 };
struct short_pair { short value; int place; };
struct long_pair { long double value; int place; };

#define ACCUMULATED(type, mpi, from) \
    do { \
        struct type mine[PAIRS], read[PAIRS], one; \
        memset(mine, 0, sizeof mine); \
        memset(read, 0x55, sizeof read); \
        for (int i = 0; i < PAIRS; i++) mine[i].value = (from) + (i + trial_rank) % trial_size, mine[i].place = trial_rank; \
        MUST(MPI_Win_fence(0, type##_window)); \
        MUST(MPI_Accumulate(mine, PAIRS, mpi, 0, 0, PAIRS, mpi, MPI_MAXLOC, type##_window)); \
        MUST(MPI_Win_fence(0, type##_window)); \
        MUST(MPI_Get_accumulate(NULL, 0, mpi, read, PAIRS, mpi, 0, 0, PAIRS, mpi, MPI_NO_OP, type##_window)); \
        MUST(MPI_Fetch_and_op(NULL, &one, mpi, 0, PAIRS - 1, MPI_NO_OP, type##_window)); \
        MUST(MPI_Win_fence(0, type##_window)); \
        for (int i = 0; i < PAIRS; i++) { \
            int winner = ((trial_size - 1 - i) % trial_size + trial_size) % trial_size; \
            CHECK((int)read[i].value == (from) + trial_size - 1 && read[i].place == winner, #mpi " %d: %d at %d, not at %d", i, (int)read[i].value, \
                  read[i].place, winner); \
        } \
        CHECK(one.place == read[PAIRS - 1].place && (int)one.value == (int)read[PAIRS - 1].value, #mpi ": fetched %d at %d", (int)one.value, one.place); \
    } while (0)

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    struct short_pair *shorts;
    struct long_pair *longs;
    MPI_Win short_pair_window, long_pair_window;
    MUST(MPI_Win_allocate(PAIRS * sizeof *shorts, sizeof *shorts, MPI_INFO_NULL, MPI_COMM_WORLD, &shorts, &short_pair_window));
    MUST(MPI_Win_allocate(PAIRS * sizeof *longs, sizeof *longs, MPI_INFO_NULL, MPI_COMM_WORLD, &longs, &long_pair_window));
    for (int i = 0; i < PAIRS; i++) shorts[i].value = -1, longs[i].value = -1;
    ACCUMULATED(short_pair, MPI_SHORT_INT, 10);
    ACCUMULATED(long_pair, MPI_LONG_DOUBLE_INT, 10);
    trial_hold();
    if (trial_rank == 0) CHECK(shorts[0].value == 10 + trial_size - 1 && longs[PAIRS - 1].value == shorts[0].value, "%d", shorts[0].value);
    ACCUMULATED(short_pair, MPI_SHORT_INT, 20);
    ACCUMULATED(long_pair, MPI_LONG_DOUBLE_INT, 20);
    MUST(MPI_Win_free(&short_pair_window));
    MUST(MPI_Win_free(&long_pair_window));
    return trial_finish();
}
