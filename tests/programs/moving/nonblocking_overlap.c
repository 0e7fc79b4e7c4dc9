/* Many nonblocking operations of both sorts are begun in one round and finished in later ones.
 * trial: ranks=2,3 */
#include "../moving.h"

#define DEPTH 8

struct flight {
    MPI_Request requests[4];
    uint64_t round, sent, got, value, sum;
};

static void land(struct flight *f, int previous) {
    MUST(MPI_Waitall(4, f->requests, MPI_STATUSES_IGNORE));
    uint64_t expected = 0;
    for (int i = 0; i < trial_size; i++) expected += trial_mix(f->round * 10 + i) >> 8;
    CHECK(f->got == trial_mix(f->round * 100 + previous), "round %d: message", (int)f->round);
    CHECK(f->sum == expected, "round %d: sum", (int)f->round);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int next = (trial_rank + 1) % trial_size, previous = (trial_rank + trial_size - 1) % trial_size;
    MPI_Comm comms[2];
    struct flight flights[DEPTH];
    for (int i = 0; i < 2; i++) MUST(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
    uint64_t round = 0;
    for (; moving_agree(round, MPI_COMM_WORLD); round++) {
        struct flight *f = &flights[round % DEPTH];
        if (round >= DEPTH) land(f, previous);
        f->round = round;
        f->sent = trial_mix(round * 100 + trial_rank);
        f->value = trial_mix(round * 10 + trial_rank) >> 8;
        MUST(MPI_Irecv(&f->got, 1, MPI_UINT64_T, previous, (int)(round % 3), comms[0], &f->requests[0]));
        MUST(MPI_Iallreduce(&f->value, &f->sum, 1, MPI_UINT64_T, MPI_SUM, comms[1], &f->requests[1]));
        MUST(MPI_Isend(&f->sent, 1, MPI_UINT64_T, next, (int)(round % 3), comms[0], &f->requests[2]));
        MUST(MPI_Ibarrier(comms[0], &f->requests[3]));
    }
    for (uint64_t left = round < DEPTH ? 0 : round - DEPTH; left < round; left++) land(&flights[left % DEPTH], previous);
    for (int i = 0; i < 2; i++) MUST(MPI_Comm_free(&comms[i]));
    return trial_finish();
}
