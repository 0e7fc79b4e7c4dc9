/* A random row of collective operations, on the world, a copy of it and halves of it, in which one rank computes (until `go`) somewhere in the middle while the
 * others go on as far as they come. Argument: the seed. What follows after the straggler never needs anything of it that others return without, so a checkpoint need not wait.
 * trial: ranks=4 */
#include "../common.h"

static unsigned long state;

/* xorshift64*: the same numbers on every rank. */
static int draw(int below) {
    state ^= state >> 12, state ^= state << 25, state ^= state >> 27;
    return (int)((state * 2685821657736338717UL >> 33) % (unsigned long)below);
}

enum { BEFORE = 14, AFTER = 30, LARGEST = 9000 };
enum own_kind { A_BARRIER, AN_ALLREDUCE, AN_ALLGATHER, AN_ALLTOALL, A_BCAST, A_SCATTER, A_GATHER, A_REDUCE, A_SCAN, KINDS_HERE };

static int *in, *out;

static void check(int round, int at, long is, long expected) {
    CHECK(is == expected, "round %d: element %d is %ld and not %ld", round, at, is, expected);
}

/* What rank `r` of a communicator puts at `i` in a round. */
static int value(int round, int r, int i) { return (round * 131 + r * 17 + i * 3) % 1000003; }

/* In place, what is sent lies in `out` already. */
static void operation(int round, enum own_kind kind, int root, int count, int in_place, MPI_Comm on) {
    int rank, size;
    MUST(MPI_Comm_rank(on, &rank));
    MUST(MPI_Comm_size(on, &size));
    for (int i = 0; i < count * size; i++) in[i] = value(round, rank, i), out[i] = -1;
    const void *sent = in_place ? MPI_IN_PLACE : in;
    if (in_place && kind == AN_ALLGATHER) memcpy(out + rank * count, in, (size_t)count * sizeof *in);
    else if (in_place) memcpy(out, in, (size_t)(count * size) * sizeof *in);
    switch (kind) {
    case A_BARRIER: MUST(MPI_Barrier(on)); break;
    case AN_ALLREDUCE:
        MUST(MPI_Allreduce(sent, out, count, MPI_INT, MPI_MAX, on));
        for (int i = 0; i < count; i++) {
            int most = 0;
            for (int r = 0; r < size; r++) most = value(round, r, i) > most ? value(round, r, i) : most;
            check(round, i, out[i], most);
        }
        break;
    case AN_ALLGATHER:
        MUST(MPI_Allgather(sent, count, MPI_INT, out, count, MPI_INT, on));
        for (int i = 0; i < count * size; i++) check(round, i, out[i], value(round, i / count, i % count));
        break;
    case AN_ALLTOALL:
        MUST(MPI_Alltoall(sent, count, MPI_INT, out, count, MPI_INT, on));
        for (int i = 0; i < count * size; i++) check(round, i, out[i], value(round, i / count, rank * count + i % count));
        break;
    case A_BCAST:
        if (rank != root) memset(in, -1, (size_t)count * sizeof *in);
        MUST(MPI_Bcast(in, count, MPI_INT, root, on));
        for (int i = 0; i < count; i++) check(round, i, in[i], value(round, root, i));
        break;
    case A_SCATTER:
        MUST(MPI_Scatter(in, count, MPI_INT, out, count, MPI_INT, root, on));
        for (int i = 0; i < count; i++) check(round, i, out[i], value(round, root, rank * count + i));
        break;
    case A_GATHER:
        MUST(MPI_Gather(in, count, MPI_INT, out, count, MPI_INT, root, on));
        if (rank == root)
            for (int i = 0; i < count * size; i++) check(round, i, out[i], value(round, i / count, i % count));
        break;
    case A_REDUCE:
        MUST(MPI_Reduce(in, out, count, MPI_INT, MPI_SUM, root, on));
        if (rank == root)
            for (int i = 0; i < count; i++) {
                long sum = 0;
                for (int r = 0; r < size; r++) sum += value(round, r, i);
                check(round, i, out[i], (int)sum);
            }
        break;
    default:
        MUST(MPI_Scan(in, out, count, MPI_INT, MPI_SUM, on));
        for (int i = 0; i < count; i++) {
            long sum = 0;
            for (int r = 0; r <= rank; r++) sum += value(round, r, i);
            check(round, i, out[i], (int)sum);
        }
    }
}

int main(int argc, char **argv) {
    unsigned long seed = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
    trial_start_threads(&argc, &argv, seed % 2 ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE);
    state = 88172645463325252UL ^ seed * 0x9E3779B97F4A7C15UL;
    for (int i = 0; i < 8; i++) draw(2);
    int size = trial_size, straggler = draw(size), half;
    in = malloc(sizeof *in * LARGEST * (size_t)size), out = malloc(sizeof *out * LARGEST * (size_t)size);
    MPI_Comm all[3];
    all[0] = MPI_COMM_WORLD;
    MUST(MPI_Comm_dup(MPI_COMM_WORLD, &all[1]));
    /* The ranks of a half keep their order. The straggler's half is used before it computes only. */
    int parity = draw(2), mine = parity ? trial_rank % 2 : trial_rank < size / 2;
    int its = parity ? straggler % 2 : straggler < size / 2;
    MUST(MPI_Comm_split(MPI_COMM_WORLD, mine, 0, &all[2]));
    MUST(MPI_Comm_size(all[2], &half));
    int smaller = size / 2;
    for (int round = 0; round < BEFORE + AFTER; round++) {
        int late = round >= BEFORE, which = draw(3), kind = draw(KINDS_HERE), large = draw(8) == 0;
        int count = draw(4) == 0 ? 0 : 1 + draw(large ? LARGEST : 60), root = draw(which == 2 ? smaller : size);
        int in_place = draw(2);
        if (round == BEFORE && trial_rank == straggler) {
            trial_ready();
            trial_wait();
        } else if (round == BEFORE) trial_ready();
        if (which == 2 && late && mine == its) continue;
        if (which != 2 && late) {
            if (kind == A_REDUCE || kind == A_SCAN) kind = A_BCAST;
            if (kind == A_GATHER) root = straggler;
            if ((kind == A_BCAST || kind == A_SCATTER) && round == BEFORE && draw(3) == 0) root = straggler;
            /* Of nothing some return at once, and what it was only a broadcast tells. */
            if (kind != A_BCAST && count == 0) count = 1;
        }
        in_place = in_place && (kind == AN_ALLREDUCE || kind == AN_ALLGATHER || kind == AN_ALLTOALL);
        operation(round, kind, root, count, in_place, all[which]);
    }
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    MUST(MPI_Comm_free(&all[1]));
    MUST(MPI_Comm_free(&all[2]));
    free(in);
    free(out);
    return trial_finish();
}
