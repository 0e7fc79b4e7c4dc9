/* Buffered sends from a communicator's own buffer and from an automatic one, and flushes of both, without a pause: whatever moment a checkpoint finds. For an MPI whose
 * ABI has them; these functions are looked for by name.
 * trial: ranks=2,3 */
#include "../newer.h"

enum { EACH = 6, LARGEST = 96 << 10 };

static int (*attach)(MPI_Comm, void *, int), (*detach)(MPI_Comm, void *, int *), (*flush)(MPI_Comm), (*iflush)(MPI_Comm, MPI_Request *);

/* The seed, and with it the size, of a rank's message. */
static uint64_t seed_of(int from, int round, int i) {
    return ((uint64_t)from * 1000003 + round) * EACH + i;
}

static int bytes_of(uint64_t seed) {
    return 1 + (int)(trial_mix(seed) % LARGEST);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    *(void **)&attach = named("MPI_Comm_attach_buffer"), *(void **)&detach = named("MPI_Comm_detach_buffer");
    *(void **)&flush = named("MPI_Comm_flush_buffer"), *(void **)&iflush = named("MPI_Comm_iflush_buffer");
    MPI_Comm comms[2];
    int room = EACH * (LARGEST + MPI_BSEND_OVERHEAD), to = (trial_rank + 1) % trial_size, from = (trial_rank + trial_size - 1) % trial_size;
    char *buffer = malloc(room), *message = malloc(LARGEST);
    for (int i = 0; i < 2; i++) MUST(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
    MUST(attach(comms[0], buffer, room));
    MUST(attach(comms[1], MPI_BUFFER_AUTOMATIC, 0));
    trial_ready();
    for (int round = 0, last = 0; !last; round++) {
        MPI_Request flushes[2], request;
        int go = trial_go(), index = -1, flag = 0;
        MUST(MPI_Allreduce(&go, &last, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
        for (int i = 0; i < EACH; i++) {
            uint64_t seed = seed_of(trial_rank, round, i);
            int bytes = bytes_of(seed);
            trial_fill(message, bytes, seed);
            if (i % 3) MUST(MPI_Bsend(message, bytes, MPI_BYTE, to, i, comms[i % 2]));
            else {
                MUST(MPI_Ibsend(message, bytes, MPI_BYTE, to, i, comms[i % 2], &request));
                MUST(MPI_Wait(&request, MPI_STATUS_IGNORE));
            }
            memset(message, 0, bytes);
        }
        for (int i = 0; i < 2; i++) MUST(iflush(comms[i], &flushes[i]));
        for (int i = EACH - 1; i >= 0; i--) {
            uint64_t seed = seed_of(from, round, i);
            int bytes = bytes_of(seed), count = -1;
            MPI_Status status;
            MUST(MPI_Recv(message, LARGEST, MPI_BYTE, from, i, comms[i % 2], &status));
            MUST(MPI_Get_count(&status, MPI_BYTE, &count));
            CHECK(count == bytes && trial_differs(message, bytes, seed) < 0, "round %d, message %d: %d bytes of %d", round, i, count, bytes);
        }
        if (round % 3 == 0) MUST(MPI_Waitall(2, flushes, MPI_STATUSES_IGNORE));
        if (round % 3 == 1) for (int i = 0; i < 2; i++) MUST(MPI_Waitany(2, flushes, &index, MPI_STATUS_IGNORE));
        if (round % 3 == 2) while (!flag) MUST(MPI_Testall(2, flushes, &flag, MPI_STATUSES_IGNORE));
        CHECK(flushes[0] == MPI_REQUEST_NULL && flushes[1] == MPI_REQUEST_NULL, "round %d: a flush is left", round);
        if (round % 4 == 0) {
            void *was = NULL;
            int bytes = -1;
            MUST(flush(comms[1]));
            MUST(detach(comms[0], &was, &bytes));
            CHECK(was == buffer && bytes == room, "round %d: %p, %d bytes", round, was, bytes);
            memset(buffer, 0, room);
            MUST(attach(comms[0], buffer, room));
        }
    }
    MUST(MPI_Comm_disconnect(&comms[0]));
    MUST(MPI_Comm_free(&comms[1]));
    return trial_finish();
}
