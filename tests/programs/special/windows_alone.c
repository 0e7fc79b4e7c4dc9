/* Windows of one process, which shares memory with nobody, and one of shared memory of which nobody has asked for any: contents, addresses, what is told of them. For an MPI
 * that makes windows of one process of any memory.
 * trial: ranks=2 */
#include "../common.h"

enum { COUNT = 16 };

struct alone {
    MPI_Win window;
    int *memory;
};

static int flavor(MPI_Win window) {
    int *said = NULL, there = 0;
    MUST(MPI_Win_get_attr(window, MPI_WIN_CREATE_FLAVOR, &said, &there));
    return there ? *said : -1;
}

static void fill(struct alone it, int first) {
    MUST(MPI_Win_fence(0, it.window));
    MUST(MPI_Put(&first, 1, MPI_INT, 0, 1, 1, MPI_INT, it.window));
    MUST(MPI_Win_fence(0, it.window));
    it.memory[2] = first + 1;
}

static void is_there(struct alone it, int first) {
    int got = -1;
    CHECK(it.memory[1] == first && it.memory[2] == first + 1, "%d, %d, not %d", it.memory[1], it.memory[2], first);
    MUST(MPI_Win_fence(0, it.window));
    MUST(MPI_Accumulate(&first, 1, MPI_INT, 0, 1, 1, MPI_INT, MPI_SUM, it.window));
    MUST(MPI_Win_fence(MPI_MODE_NOSUCCEED, it.window));
    CHECK(it.memory[1] == 2 * first, "accumulated: %d", it.memory[1]);
    MUST(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, it.window));
    MUST(MPI_Get(&got, 1, MPI_INT, 0, 2, 1, MPI_INT, it.window));
    MUST(MPI_Win_unlock(0, it.window));
    CHECK(got == first + 1, "got %d", got);
}

static void shared_is(MPI_Win window, int rank, MPI_Aint bytes, void *base) {
    MPI_Aint said = -1;
    int unit = -1;
    void *at = &said;
    MUST(MPI_Win_shared_query(window, rank, &said, &unit, &at));
    CHECK(said == bytes && at == base, "%ld bytes at %p, not %ld at %p", (long)said, at, (long)bytes, base);
    CHECK(bytes == 0 || unit == sizeof(int), "unit %d", unit);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int own[COUNT], first = 100 * (1 + trial_rank);
    struct alone created = {.memory = own}, allocated, shared;
    MPI_Aint bytes = sizeof own;
    MPI_Win nothing;
    void *none = own;
    MUST(MPI_Win_create(own, bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_SELF, &created.window));
    MUST(MPI_Win_allocate(bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_SELF, &allocated.memory, &allocated.window));
    MUST(MPI_Win_allocate_shared(bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_SELF, &shared.memory, &shared.window));
    MUST(MPI_Win_allocate_shared(0, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &none, &nothing));
    fill(created, first);
    fill(allocated, first + 10);
    fill(shared, first + 20);

    trial_hold();

    is_there(created, first);
    is_there(allocated, first + 10);
    is_there(shared, first + 20);
    CHECK(flavor(created.window) == MPI_WIN_FLAVOR_CREATE && flavor(allocated.window) == MPI_WIN_FLAVOR_ALLOCATE, "flavors");
    CHECK(flavor(shared.window) == MPI_WIN_FLAVOR_SHARED && flavor(nothing) == MPI_WIN_FLAVOR_SHARED, "flavors of shared memory");
    shared_is(shared.window, 0, bytes, shared.memory);
    shared_is(shared.window, MPI_PROC_NULL, bytes, shared.memory);
    for (int rank = 0; rank < trial_size; rank++) shared_is(nothing, rank, 0, NULL);
    shared_is(nothing, MPI_PROC_NULL, 0, NULL);
    MUST(MPI_Win_fence(0, nothing));
    MUST(MPI_Win_free(&nothing));
    MUST(MPI_Win_free(&shared.window));
    MUST(MPI_Win_free(&allocated.window));
    MUST(MPI_Win_free(&created.window));
    return trial_finish();
}
