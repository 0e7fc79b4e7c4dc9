/* Windows of every kind that is carried, in fence epochs: operations before the checkpoint, and after it.
 * trial: ranks=2,3 */
#include "../common.h"

#define WORDS 64

static int one_copied(MPI_Win old, int key, void *extra, void *in, void *out, int *flag) {
    (void)old, (void)key, (void)extra, (void)in, (void)out;
    *flag = 0;
    return MPI_SUCCESS;
}

static int deleted = 0;

static int one_deleted(MPI_Win window, int key, void *value, void *extra) {
    (void)window, (void)key, (void)extra;
    deleted += (int)(intptr_t)value;
    return MPI_SUCCESS;
}

/* What MPI says of a window. */
static void described(MPI_Win window, void *base, MPI_Aint size, int unit, int flavor, const char *name) {
    void *said_base = NULL;
    MPI_Aint *said_size = NULL;
    int *said_unit = NULL, *said_flavor = NULL, *model = NULL, there = 0, length = 0, members = 0, same = 0;
    char said[MPI_MAX_OBJECT_NAME];
    MPI_Group group, world;
    MUST(MPI_Win_get_attr(window, MPI_WIN_BASE, &said_base, &there));
    CHECK(there && said_base == base, "base %p, not %p", said_base, base);
    MUST(MPI_Win_get_attr(window, MPI_WIN_SIZE, &said_size, &there));
    CHECK(there && *said_size == size, "size");
    MUST(MPI_Win_get_attr(window, MPI_WIN_DISP_UNIT, &said_unit, &there));
    CHECK(there && *said_unit == unit, "unit");
    MUST(MPI_Win_get_attr(window, MPI_WIN_CREATE_FLAVOR, &said_flavor, &there));
    CHECK(there && *said_flavor == flavor, "flavor %d, not %d", *said_flavor, flavor);
    MUST(MPI_Win_get_attr(window, MPI_WIN_MODEL, &model, &there));
    CHECK(there && *model == MPI_WIN_UNIFIED, "model");
    MUST(MPI_Win_get_name(window, said, &length));
    CHECK(!strcmp(said, name), "name %s, not %s", said, name);
    MUST(MPI_Win_get_group(window, &group));
    MUST(MPI_Group_size(group, &members));
    MUST(MPI_Comm_group(MPI_COMM_WORLD, &world));
    MUST(MPI_Group_compare(group, world, &same));
    CHECK(members == trial_size && same == MPI_IDENT, "group");
    MUST(MPI_Group_free(&group));
    MUST(MPI_Group_free(&world));
}

/* Puts, gets and accumulates in one epoch, to be closed by the caller. */
static void begin(MPI_Win window, long *from, long *into, int step) {
    int next = (trial_rank + 1) % trial_size;
    from[0] = 1000 * step + trial_rank;
    from[1] = step;
    MUST(MPI_Put(from, 1, MPI_LONG, next, 4, 1, MPI_LONG, window));
    MUST(MPI_Accumulate(from + 1, 1, MPI_LONG, next, 5, 1, MPI_LONG, MPI_SUM, window));
    MUST(MPI_Get(into, 1, MPI_LONG, next, 6, 1, MPI_LONG, window));
}

static void check(const long *memory, const long *into, int step, long sum) {
    int before = (trial_rank + trial_size - 1) % trial_size, next = (trial_rank + 1) % trial_size;
    CHECK(memory[4] == 1000 * step + before, "put in step %d: %ld", step, memory[4]);
    CHECK(memory[5] == sum, "sum in step %d: %ld", step, memory[5]);
    CHECK(into[0] == 77 + next, "got in step %d: %ld", step, into[0]);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    static long own[WORDS], from[2][2], into[2][1];
    long *memory = NULL, *bases[2];
    MPI_Win windows[2];
    MPI_Comm copy;
    MPI_Info info, said;
    char value[64], name[MPI_MAX_OBJECT_NAME];
    int length = 0, key = MPI_KEYVAL_INVALID, there = 0;
    void *kept = NULL;
    MUST(MPI_Comm_dup(MPI_COMM_WORLD, &copy));
    MUST(MPI_Info_create(&info));
    MUST(MPI_Info_set(info, "no_locks", "true"));
    MUST(MPI_Win_create(own, sizeof own, sizeof(long), info, copy, &windows[0]));
    MUST(MPI_Info_free(&info));
    /* The window outlives the communicator. */
    MUST(MPI_Comm_free(&copy));
    MUST(MPI_Win_allocate(WORDS * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &windows[1]));
    bases[0] = own;
    bases[1] = memory;
    MUST(MPI_Win_set_name(windows[1], "allocated"));
    MUST(MPI_Win_create_keyval(one_copied, one_deleted, &key, NULL));
    MUST(MPI_Win_set_attr(windows[0], key, (void *)5));
    MUST(MPI_Win_set_errhandler(windows[0], MPI_ERRORS_RETURN));
    for (int i = 0; i < 2; i++) {
        memset(bases[i], 0, sizeof own);
        bases[i][6] = 77 + trial_rank;
        MUST(MPI_Win_fence(MPI_MODE_NOPRECEDE, windows[i]));
        begin(windows[i], from[i], into[i], 1);
    }
    MUST(MPI_Win_get_name(windows[0], name, &length));
    /* A target that is outside of MPI may keep others in their calls. */
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    trial_hold();
    described(windows[0], own, sizeof own, sizeof(long), MPI_WIN_FLAVOR_CREATE, name);
    described(windows[1], memory, WORDS * sizeof(long), sizeof(long), MPI_WIN_FLAVOR_ALLOCATE, "allocated");
    MUST(MPI_Win_get_info(windows[0], &said));
    MUST(MPI_Info_get(said, "no_locks", 63, value, &there));
    CHECK(!there || !strcmp(value, "true"), "no_locks is %s", value);
    MUST(MPI_Info_free(&said));
    for (int i = 0; i < 2; i++) {
        MUST(MPI_Win_fence(0, windows[i]));
        check(bases[i], into[i], 1, 1);
        MUST(MPI_Win_fence(0, windows[i]));
        begin(windows[i], from[i], into[i], 2);
        MUST(MPI_Win_fence(MPI_MODE_NOSUCCEED, windows[i]));
        check(bases[i], into[i], 2, 3);
    }
    CHECK(MPI_Put(from[0], 1, MPI_LONG, 0, 4, 1, MPI_LONG, windows[0]) != MPI_SUCCESS, "a put outside of every epoch");
    MUST(MPI_Win_get_attr(windows[0], key, &kept, &there));
    CHECK(there && kept == (void *)5, "attribute");
    MUST(MPI_Win_free(&windows[0]));
    CHECK(deleted == 5, "deleted: %d", deleted);
    MUST(MPI_Win_free(&windows[1]));
    MUST(MPI_Win_free_keyval(&key));
    return trial_finish();
}
