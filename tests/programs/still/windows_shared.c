/* Memory that ranks share in windows (MPI_Win_allocate_shared): contents and addresses, by loads and stores and by MPI's operations; parts of
 * different sizes, with nothing in them, on pages of their own.
 * trial: ranks=2,3 */
#include "../common.h"

struct queried {
    MPI_Aint bytes;
    int unit;
    char *base;
};

static struct queried query(MPI_Win window, int rank) {
    struct queried it = {-1, -1, NULL};
    MUST(MPI_Win_shared_query(window, rank, &it.bytes, &it.unit, &it.base));
    return it;
}

static void described(MPI_Win window, void *base, MPI_Aint bytes, int unit) {
    void *said_base = NULL;
    MPI_Aint *said_bytes = NULL;
    int *said_unit = NULL, *flavor = NULL, *model = NULL, there = 0;
    MUST(MPI_Win_get_attr(window, MPI_WIN_BASE, &said_base, &there));
    CHECK(there && said_base == base, "base %p, not %p", said_base, base);
    MUST(MPI_Win_get_attr(window, MPI_WIN_SIZE, &said_bytes, &there));
    CHECK(there && *said_bytes == bytes, "bytes");
    MUST(MPI_Win_get_attr(window, MPI_WIN_DISP_UNIT, &said_unit, &there));
    CHECK(there && *said_unit == unit, "unit");
    MUST(MPI_Win_get_attr(window, MPI_WIN_CREATE_FLAVOR, &flavor, &there));
    CHECK(there && *flavor == MPI_WIN_FLAVOR_SHARED, "flavor %d", *flavor);
    MUST(MPI_Win_get_attr(window, MPI_WIN_MODEL, &model, &there));
    CHECK(there && *model == MPI_WIN_UNIFIED, "model");
}

/* Rank r has 1000 r integers: none of its own on rank 0. */
static MPI_Aint bytes_of(int rank) { return 1000 * rank * (MPI_Aint)sizeof(int); }

/* Apart, Open MPI tells of whole pages, MPICH of what was asked for; that stays so. */
static MPI_Aint told[2][8];

static void uneven(int apart, MPI_Win *window, int **own) {
    MPI_Info info;
    MUST(MPI_Info_create(&info));
    MUST(MPI_Info_set(info, "alloc_shared_noncontig", apart ? "true" : "false"));
    MUST(MPI_Win_allocate_shared(bytes_of(trial_rank), 1 + trial_rank, info, MPI_COMM_WORLD, own, window));
    MUST(MPI_Info_free(&info));
    described(*window, *own, bytes_of(trial_rank), 1 + trial_rank);
    for (int i = 0; i < 1000 * trial_rank; i++) (*own)[i] = 7 * trial_rank + i;
    for (int rank = 0; rank < trial_size; rank++) told[apart][rank] = query(*window, rank).bytes;
}

static void uneven_is_there(int apart, MPI_Win window, int *own) {
    for (int rank = 0; rank < trial_size; rank++) {
        struct queried it = query(window, rank);
        MPI_Aint least = bytes_of(rank), pages = (least + 4095) / 4096 * 4096;
        CHECK(it.bytes == told[apart][rank] && it.unit == 1 + rank, "part %d: %ld bytes, not %ld, unit %d", rank, (long)it.bytes, (long)told[apart][rank], it.unit);
        CHECK(it.bytes == least || (apart && it.bytes == pages), "part %d: %ld bytes", rank, (long)it.bytes);
        if (rank == trial_rank) CHECK(it.base == (char *)own, "own part at %p", it.base);
        if (rank > 0 && !apart) CHECK(it.base == query(window, 1).base + bytes_of(1) * (rank == 2), "part %d at %p", rank, it.base);
        for (int i = 0; i < 1000 * rank; i++) CHECK(((int *)it.base)[i] == 7 * rank + i, "part %d[%d]: %d", rank, i, ((int *)it.base)[i]);
    }
    struct queried first = query(window, MPI_PROC_NULL);
    CHECK(first.bytes == query(window, 1).bytes && first.unit == 2 && first.base == query(window, 1).base, "the first part that is there");
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    enum { LARGE = 3 << 20 };
    int *memory = NULL, *uneven_own[2], peer = trial_rank ^ 1, unit = 0, value = 100 + trial_rank, got = -1;
    int paired = peer < trial_size;
    MPI_Aint bytes = 0;
    MPI_Win window, uneven_windows[2], kept;
    char *large = NULL;
    MUST(MPI_Win_allocate_shared(16 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window));
    if (!paired) peer = trial_rank;
    struct queried their = query(window, peer);
    int *theirs = (int *)their.base;
    CHECK(their.bytes == 16 * sizeof(int) && their.unit == sizeof(int), "%ld bytes", (long)their.bytes);
    described(window, memory, 16 * sizeof(int), sizeof(int));
    for (int apart = 0; apart < 2; apart++) uneven(apart, &uneven_windows[apart], &uneven_own[apart]);
    /* One has all, and the last page of it is touched by another one. */
    MUST(MPI_Win_allocate_shared(trial_rank == trial_size - 1 ? LARGE : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &large, &kept));
    large = query(kept, trial_size - 1).base;
    if (trial_rank == 0) large[LARGE - 1] = 11;
    if (trial_rank == 1) large[LARGE / 2] = 12;
    memory[3] = 7 + trial_rank;
    MUST(MPI_Win_fence(0, window));
    MUST(MPI_Put(&value, 1, MPI_INT, peer, 1, 1, MPI_INT, window));
    MUST(MPI_Win_fence(0, window));
    CHECK(memory[1] == 100 + peer, "put before: %d", memory[1]);
    MUST(MPI_Win_lock_all(MPI_MODE_NOCHECK, kept));
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    trial_hold();
    CHECK(theirs[3] == 7 + peer, "seen: %d", theirs[3]);
    CHECK(query(window, peer).base == their.base, "moved to %p", query(window, peer).base);
    described(window, memory, 16 * sizeof(int), sizeof(int));
    for (int apart = 0; apart < 2; apart++) uneven_is_there(apart, uneven_windows[apart], uneven_own[apart]);
    CHECK(large[LARGE - 1] == 11 && large[LARGE / 2] == 12 && large[0] == 0, "large: %d, %d, %d", large[LARGE - 1], large[LARGE / 2], large[0]);
    MUST(MPI_Win_sync(kept));
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    /* It is one memory still, and not a copy. */
    if (trial_rank == 0) large[1] = 77;
    MUST(MPI_Win_sync(kept));
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    MUST(MPI_Win_sync(kept));
    CHECK(large[1] == 77, "stored after: %d", large[1]);
    MUST(MPI_Win_unlock_all(kept));
    MUST(MPI_Win_fence(0, window));
    MUST(MPI_Accumulate(&value, 1, MPI_INT, peer, 1, 1, MPI_INT, MPI_SUM, window));
    MUST(MPI_Win_fence(MPI_MODE_NOSUCCEED, window));
    CHECK(memory[1] == 2 * (100 + peer), "accumulated: %d", memory[1]);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    MUST(MPI_Win_lock(MPI_LOCK_SHARED, peer, 0, window));
    MUST(MPI_Get(&got, 1, MPI_INT, peer, 3, 1, MPI_INT, window));
    MUST(MPI_Win_unlock(peer, window));
    CHECK(got == 7 + peer, "got %d", got);
    MUST(MPI_Win_shared_query(window, peer, &bytes, &unit, &theirs));
    for (int apart = 0; apart < 2; apart++) MUST(MPI_Win_free(&uneven_windows[apart]));
    MUST(MPI_Win_free(&kept));
    MUST(MPI_Win_free(&window));
    return trial_finish();
}
