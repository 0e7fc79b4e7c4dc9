/* What MPI makes when it is first asked for is made once, however many threads ask at the same moment: Fortran numbers, datatypes of a precision and range,
 * the data of MPI_INFO_ENV, the name of a predefined datatype, a group that the real MPI gets to know.
 * trial: ranks=2 flags=-pthread */
#include "../common.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { THREADS = 3, ROUNDS = 240, GROUPS = 6 };

static atomic_int come;
static MPI_Info infos[ROUNDS];
static MPI_Datatype types[ROUNDS];
static MPI_Group groups[GROUPS];
static MPI_Comm comms[THREADS];
static int after; /* the restart */

static struct said {
    MPI_Fint infos[ROUNDS], types[ROUNDS];
    MPI_Datatype reals[ROUNDS];
    char name[MPI_MAX_OBJECT_NAME];
    int keys;
} said[THREADS];

/* Lets the threads go on at the same moment, as far as there are processors. */
static void together(void) {
    int mine = atomic_fetch_add(&come, 1), all = mine - mine % THREADS + THREADS;
    for (int i = 0; atomic_load(&come) < all; i++)
        if (i % 1000 == 999) sched_yield();
}

static void *use(void *argument) {
    int me = (int)(intptr_t)argument, length = 0;
    struct said *mine = &said[me];
    together();
    if (me == 0) MUST(MPI_Type_set_name(after ? MPI_FLOAT : MPI_INT, "ours"));
    MUST(MPI_Type_get_name(after ? MPI_FLOAT : MPI_INT, mine->name, &length));
    together();
    MUST(MPI_Type_get_name(after ? MPI_FLOAT : MPI_INT, mine->name, &length));
    MUST(MPI_Info_get_nkeys(MPI_INFO_ENV, &mine->keys));
    for (int i = 0; i < ROUNDS; i++) {
        together();
        MUST(MPI_Type_create_f90_real(1 + i % 6, 1 + i / 6 % 12 + 12 * after, &mine->reals[i]));
        together();
        mine->infos[i] = MPI_Info_c2f(infos[i]);
        mine->types[i] = MPI_Type_c2f(types[i]);
    }
    for (int i = 0; i < GROUPS; i++) {
        MPI_Comm made;
        int size = 0;
        together();
        MUST(MPI_Comm_create_group(comms[me], groups[i], me, &made));
        MUST(MPI_Comm_size(made, &size));
        CHECK(size == trial_size, "%d", size);
        MUST(MPI_Comm_free(&made));
    }
    return NULL;
}

/* Open MPI itself now and then makes two. */
static int is_made_once(void) {
    char line[4096];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && !found && fgets(line, sizeof line, maps)) found = strstr(line, "libstillpoint") != NULL;
    if (maps) fclose(maps);
    return found;
}

static void at_once(void) {
    int once = is_made_once();
    pthread_t threads[THREADS];
    for (int i = 0; i < ROUNDS; i++) {
        MUST(MPI_Info_create(&infos[i]));
        MUST(MPI_Type_contiguous(i + 1, MPI_INT, &types[i]));
    }
    int reversed[2] = {1, 0};
    for (int i = 0; i < GROUPS; i++) {
        MPI_Group world;
        MUST(MPI_Comm_group(MPI_COMM_WORLD, &world));
        MUST(MPI_Group_incl(world, 2, reversed, &groups[i]));
        MUST(MPI_Group_free(&world));
    }
    for (intptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, use, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int t = 0; t < THREADS; t++) {
        CHECK(strcmp(said[t].name, "ours") == 0, "thread %d: name '%s'", t, said[t].name);
        CHECK(said[t].keys == said[0].keys, "thread %d: %d keys, and %d", t, said[t].keys, said[0].keys);
        for (int i = 0; i < ROUNDS; i++) {
            if (!once) continue;
            CHECK(said[t].infos[i] == said[0].infos[i], "info %d: numbers %d, %d", i, said[t].infos[i], said[0].infos[i]);
            CHECK(said[t].types[i] == said[0].types[i], "type %d: numbers %d, %d", i, said[t].types[i], said[0].types[i]);
            CHECK(said[t].reals[i] == said[0].reals[i], "real %d: two handles", i);
        }
    }
    for (int i = 0; i < ROUNDS; i++) {
        if (once) CHECK(MPI_Info_f2c(said[0].infos[i]) == infos[i], "info %d", i);
        if (once) CHECK(MPI_Type_f2c(said[0].types[i]) == types[i], "type %d", i);
        MUST(MPI_Info_free(&infos[i]));
        MUST(MPI_Type_free(&types[i]));
    }
    for (int i = 0; i < GROUPS; i++) MUST(MPI_Group_free(&groups[i]));
}

int main(int argc, char **argv) {
    trial_start_threads(&argc, &argv, MPI_THREAD_MULTIPLE);
    for (int i = 0; i < THREADS; i++) MUST(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
    at_once();
    trial_hold();
    after = 1;
    at_once();
    for (int i = 0; i < THREADS; i++) MUST(MPI_Comm_free(&comms[i]));
    return trial_finish();
}
