/* Random messages between all pairs: every mode, small to large, received by name or from anybody, probed or not.
 * trial: ranks=2,3,4 safe_states=clock,barrier */
#include "../moving.h"

#define EACH 6
#define MOST 60000

/* What a message holds and how it is sent follows from its number, sender and receiver. */
static uint64_t draw_of(uint64_t round, int i, int from, int to) { return trial_mix(((round * EACH + i) * 8 + from) * 8 + to); }
static int bytes_of(uint64_t draw) { return (int)(draw % 11 == 0 ? MOST - (draw >> 8) % 1000 : (draw >> 8) % 600); }

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int room = 8 * (MOST + MPI_BSEND_OVERHEAD) * EACH, n = trial_size;
    MUST(MPI_Buffer_attach(malloc(room), room));
    char *out = malloc((size_t)n * EACH * MOST), *in = malloc(MOST);
    MPI_Comm comm;
    MUST(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    for (uint64_t round = 0; moving_agree(round, MPI_COMM_WORLD); round++) {
        MPI_Request requests[8 * EACH];
        int count = 0, next[8] = {0};
        for (int i = 0; i < EACH; i++)
            for (int to = 0; to < n; to++) {
                uint64_t draw = draw_of(round, i, trial_rank, to);
                char *buffer = out + ((size_t)i * n + to) * MOST;
                int bytes = bytes_of(draw), mode = (int)(draw >> 40) % 3;
                trial_fill(buffer, bytes, draw);
                if (mode == 0) MUST(MPI_Isend(buffer, bytes, MPI_BYTE, to, (int)round % 100, comm, &requests[count++]));
                else if (mode == 1) MUST(MPI_Issend(buffer, bytes, MPI_BYTE, to, (int)round % 100, comm, &requests[count++]));
                else MUST(MPI_Ibsend(buffer, bytes, MPI_BYTE, to, (int)round % 100, comm, &requests[count++]));
            }
        for (int left = n * EACH; left > 0; left--) {
            MPI_Status status;
            MPI_Message message;
            MPI_Request receive;
            int got = -1, way = (int)(trial_mix(round * 1000 + left * 10 + trial_rank) % 5), tag = (int)round % 100;
            switch (way) {
            case 0: MUST(MPI_Recv(in, MOST, MPI_BYTE, MPI_ANY_SOURCE, tag, comm, &status)); break;
            case 1:
                MUST(MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status));
                MUST(MPI_Recv(in, MOST, MPI_BYTE, status.MPI_SOURCE, tag, comm, &status));
                break;
            case 2:
                MUST(MPI_Mprobe(MPI_ANY_SOURCE, tag, comm, &message, &status));
                MUST(MPI_Mrecv(in, MOST, MPI_BYTE, &message, &status));
                break;
            case 3:
                MUST(MPI_Irecv(in, MOST, MPI_BYTE, MPI_ANY_SOURCE, tag, comm, &receive));
                MUST(MPI_Wait(&receive, &status));
                break;
            default:
                MUST(MPI_Irecv(in, MOST, MPI_BYTE, MPI_ANY_SOURCE, tag, comm, &receive));
                for (int flag = 0; !flag;) MUST(MPI_Test(&receive, &flag, &status));
            }
            int from = status.MPI_SOURCE, i = next[from]++;
            uint64_t draw = draw_of(round, i, from, trial_rank);
            MUST(MPI_Get_count(&status, MPI_BYTE, &got));
            CHECK(got == bytes_of(draw), "round %d: message %d of rank %d has %d bytes, not %d (way %d)", (int)round, i, from, got, bytes_of(draw), way);
            CHECK(trial_differs(in, got, draw) < 0, "round %d: message %d of rank %d: contents", (int)round, i, from);
        }
        MUST(MPI_Waitall(count, requests, MPI_STATUSES_IGNORE));
    }
    MUST(MPI_Comm_free(&comm));
    return trial_finish();
}
