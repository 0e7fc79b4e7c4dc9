/* A random program: the seed in its first argument decides what happens, the same on every rank. Collective operations
 * of every kind and form on overlapping communicators, communicators that come and go, messages that are received
 * at once or after other things, and computation of any length. What happens is a sequence that is a correct
 * execution as it stands, and each rank does its part of it: so it cannot deadlock. Every value is checked.
 * trial: ranks=4 */
#include "../collectives.h"
#include "../moving.h"

#define HAPPENINGS 24 /* in a round */
#define GROUPS 5
#define LATER 64
#define LONGEST 6 /* happenings between the beginning and the end of what is outstanding */

static uint64_t seed;
static MPI_Comm groups[GROUPS], graphs[GROUPS];

/* Persistent operations that live to the end; each rank frees others than the next. They are made in the first happenings. */
#define LAST_PERSISTENT 150
static struct collective *kept[LAST_PERSISTENT];
static int keeps;

/* What this rank has begun and has to bring to its end when the number of the happening comes. */
enum what { NOTHING, COLLECTIVE, SEND, RECEIVE };
static struct later {
    enum what what;
    uint64_t due;
    struct collective *collective;
    MPI_Request request;
    unsigned char *bytes;
    size_t count;
    int from, tag;
    uint64_t value;
} outstanding[LATER];

/* The happening's draw for that purpose, the same on every rank. */
static uint64_t draw(uint64_t happening, int purpose) { return trial_mix(trial_mix(seed + happening * 64) + (uint64_t)purpose); }

static struct later *later(enum what what, uint64_t due) {
    for (int i = 0; i < LATER; i++)
        if (outstanding[i].what == NOTHING) {
            outstanding[i].what = what;
            outstanding[i].due = due;
            return &outstanding[i];
        }
    CHECK(0, "%s", "too much is outstanding");
    exit(1);
}

/* The world, three groups and a reversed copy of the first of them; null where this rank is no member. */
static void make_groups(void) {
    MUST(MPI_Comm_dup(MPI_COMM_WORLD, &groups[0]));
    for (int g = 1; g < GROUPS; g++) {
        uint64_t members = draw(0, g == GROUPS - 1 ? 1 : g);
        int member = (int)(members >> trial_rank & 1) || trial_rank == (int)((members >> 32) % (uint64_t)trial_size);
        int key = g == GROUPS - 1 ? -trial_rank : trial_rank;
        MUST(MPI_Comm_split(MPI_COMM_WORLD, member ? 1 : MPI_UNDEFINED, key, &groups[g]));
    }
    for (int g = 0; g < GROUPS; g++) graphs[g] = groups[g] == MPI_COMM_NULL ? MPI_COMM_NULL : collective_graph(groups[g]);
}

static void collective(uint64_t happening) {
    int g = (int)(draw(happening, 1) % GROUPS), size;
    if (groups[g] == MPI_COMM_NULL) return;
    MUST(MPI_Comm_size(groups[g], &size));
    enum kind kind = (enum kind)(draw(happening, 2) % ALL_KINDS);
    enum form form = (enum form)(draw(happening, 3) % (happening < LAST_PERSISTENT ? 3 : 2));
    int block = draw(happening, 4) % 16 == 0 ? 4000 : 1 + (int)(draw(happening, 4) >> 8 & 0xffff) % 30;
    int root = (int)(draw(happening, 5) % (uint64_t)size);
    struct collective *c = collective_make(kind, kind < GLOBAL_KINDS ? groups[g] : graphs[g], block, root);
    collective_fill(c, (int)(draw(happening, 6) & 0xffffff));
    collective_call(c, form);
    if (form == BLOCKING) {
        collective_check(c);
        collective_delete(c);
        return;
    }
    if (form == PERSISTENT) MUST(MPI_Start(&c->request));
    /* Each member waits for it when it likes. */
    uint64_t due = happening + 1 + trial_mix(draw(happening, 7) + (uint64_t)trial_rank) % LONGEST;
    later(COLLECTIVE, due)->collective = c;
}

static void message(uint64_t happening) {
    int from = (int)(draw(happening, 1) % (uint64_t)trial_size), to = (int)(draw(happening, 2) % (uint64_t)trial_size);
    uint64_t received = happening + 1 + draw(happening, 3) % LONGEST;
    size_t count = draw(happening, 4) % 8 == 0 ? 200000 : draw(happening, 4) >> 8 & 0xfff;
    uint64_t value = draw(happening, 5);
    int tag = (int)(happening % 30000);
    if (trial_rank == to) {
        struct later *it = later(RECEIVE, received);
        it->from = draw(happening, 6) % 3 ? from : MPI_ANY_SOURCE;
        it->tag = tag, it->count = count, it->value = value, it->request = MPI_REQUEST_NULL;
        it->bytes = malloc(count + 1);
        /* Some are posted at once, the others are looked for when they are due. */
        if (draw(happening, 7) % 2) MUST(MPI_Irecv(it->bytes, (int)count, MPI_BYTE, it->from, tag, MPI_COMM_WORLD, &it->request));
    }
    if (trial_rank == from) {
        /* Whoever receives it does so before its sender waits. */
        struct later *it = later(SEND, received + 1);
        it->bytes = malloc(count + 1);
        trial_fill(it->bytes, count, value);
        int synchronous = draw(happening, 8) % 3 == 0;
        MUST((synchronous ? MPI_Issend : MPI_Isend)(it->bytes, (int)count, MPI_BYTE, to, tag, MPI_COMM_WORLD, &it->request));
    }
}

/* A blocking synchronous send to a rank that does nothing else meanwhile. */
static void rendezvous(uint64_t happening) {
    int from = (int)(draw(happening, 1) % (uint64_t)trial_size), to = (int)(draw(happening, 2) % (uint64_t)trial_size);
    uint64_t value = draw(happening, 3), got = 0;
    if (from == to) return;
    if (trial_rank == from) MUST(MPI_Ssend(&value, 1, MPI_UINT64_T, to, 30001, MPI_COMM_WORLD));
    if (trial_rank == to) {
        MUST(MPI_Recv(&got, 1, MPI_UINT64_T, from, 30001, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(got == value, "happening %lu", (unsigned long)happening);
    }
}

/* A communicator is made, used once and freed. */
static void come_and_go(uint64_t happening) {
    int g = (int)(draw(happening, 1) % GROUPS), size;
    if (groups[g] == MPI_COMM_NULL) return;
    MPI_Comm made;
    int colour = (int)(draw(happening, 2) >> trial_rank & 1);
    MUST(MPI_Comm_split(groups[g], colour, 0, &made));
    MUST(MPI_Comm_size(made, &size));
    int one = 1, sum = 0;
    MUST(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, made));
    CHECK(sum == size, "happening %lu: %d of %d", (unsigned long)happening, sum, size);
    MUST(MPI_Comm_free(&made));
}

static void compute(uint64_t happening) {
    double seconds = 1e-6 * (double)(trial_mix(draw(happening, 1) + (uint64_t)trial_rank) % 4000);
    if (draw(happening, 2) % 2) trial_compute(seconds);
    else usleep((useconds_t)(1e6 * seconds));
}

static void receive(struct later *it) {
    MPI_Status status;
    if (it->request != MPI_REQUEST_NULL) {
        MUST(MPI_Wait(&it->request, &status));
    } else if (it->value % 2) {
        int there = 0;
        while (!there) MUST(MPI_Iprobe(it->from, it->tag, MPI_COMM_WORLD, &there, &status));
        MUST(MPI_Recv(it->bytes, (int)it->count, MPI_BYTE, status.MPI_SOURCE, it->tag, MPI_COMM_WORLD, &status));
    } else {
        MUST(MPI_Recv(it->bytes, (int)it->count, MPI_BYTE, it->from, it->tag, MPI_COMM_WORLD, &status));
    }
    int count = -1;
    MUST(MPI_Get_count(&status, MPI_BYTE, &count));
    CHECK(count == (int)it->count, "%d bytes instead of %zu", count, it->count);
    CHECK(trial_differs(it->bytes, it->count, it->value) < 0, "tag %d", it->tag);
}

static void finish(struct later *it) {
    if (it->what == COLLECTIVE) {
        struct collective *c = it->collective;
        MUST(MPI_Wait(&c->request, MPI_STATUS_IGNORE));
        collective_check(c);
        int persistent = c->request != MPI_REQUEST_NULL, keep = persistent && trial_mix((uint64_t)c->seed + (uint64_t)trial_rank) % 2;
        if (keep) kept[keeps++] = c;
        else if (persistent) MUST(MPI_Request_free(&c->request));
        if (!keep) collective_delete(c);
    } else {
        if (it->what == RECEIVE) receive(it);
        else MUST(MPI_Wait(&it->request, MPI_STATUS_IGNORE));
        free(it->bytes);
    }
    it->what = NOTHING;
}

/* What is due by then, receives first. */
static void what_is_due(uint64_t now) {
    for (enum what what = RECEIVE; what != NOTHING; what = (enum what)(what - 1))
        for (uint64_t due = now > LONGEST + 1 ? now - LONGEST - 1 : 0; due <= now; due++)
            for (int i = 0; i < LATER; i++)
                if (outstanding[i].what == what && outstanding[i].due == due) finish(&outstanding[i]);
}

static void happens(uint64_t happening) {
    switch (draw(happening, 0) % 12) {
    case 0: case 1: case 2: case 3: collective(happening); break;
    case 4: case 5: case 6: message(happening); break;
    case 7: rendezvous(happening); break;
    case 8: come_and_go(happening); break;
    default: compute(happening); break;
    }
}

int main(int argc, char **argv) {
    seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    trial_start_threads(&argc, &argv, seed % 2 ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE);
    make_groups();
    uint64_t happening = 1;
    for (uint64_t round = 0; moving_agree(round, MPI_COMM_WORLD); round++)
        for (int i = 0; i < HAPPENINGS; i++, happening++) {
            what_is_due(happening);
            happens(happening);
        }
    for (int i = 0; i <= LONGEST + 1; i++) what_is_due(happening + (uint64_t)i);
    for (int i = 0; i < keeps; i++) {
        MUST(MPI_Request_free(&kept[i]->request));
        collective_delete(kept[i]);
    }
    for (int g = 0; g < GROUPS; g++)
        if (groups[g] != MPI_COMM_NULL) {
            MUST(MPI_Comm_free(&graphs[g]));
            MUST(MPI_Comm_free(&groups[g]));
        }
    return trial_finish();
}
