/* Messages with derived types with holes are in flight or their receives are pending; holes stay untouched.
 * trial: ranks=2 */
#include "../common.h"
#include <stddef.h>

struct record {
    char kind;
    double value;
    int numbers[3];
    short last;
};

static MPI_Datatype make_record(void) {
    int lengths[4] = {1, 1, 2, 1};
    MPI_Aint places[4] = {offsetof(struct record, kind), offsetof(struct record, value),
                          offsetof(struct record, numbers) + sizeof(int), offsetof(struct record, last)};
    MPI_Datatype types[4] = {MPI_CHAR, MPI_DOUBLE, MPI_INT, MPI_SHORT}, plain, made;
    MUST(MPI_Type_create_struct(4, lengths, places, types, &plain));
    MUST(MPI_Type_create_resized(plain, 0, sizeof(struct record), &made));
    MUST(MPI_Type_commit(&made));
    MUST(MPI_Type_free(&plain));
    return made;
}

#define COUNT 5000

static void expect(const struct record *in, int seed, const char *which) {
    for (int i = 0; i < COUNT; i++) {
        int right = in[i].kind == (char)(i + seed) && in[i].value == i * 1.5 + seed && in[i].numbers[1] == i - seed &&
                    in[i].numbers[2] == i + seed && in[i].last == (short)(i * 3);
        int untouched = in[i].numbers[0] == 0x5a5a5a5a && ((const unsigned char *)&in[i])[2] == 0x5a;
        if (!right || !untouched) {
            CHECK(0, "%s: record %d: right %d, holes untouched %d", which, i, right, untouched);
            return;
        }
    }
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int peer = 1 - trial_rank;
    MPI_Datatype record = make_record(), column;
    struct record *out = malloc(COUNT * sizeof *out), *posted = malloc(COUNT * sizeof *out),
                  *later = malloc(COUNT * sizeof *out);
    memset(posted, 0x5a, COUNT * sizeof *out);
    memset(later, 0x5a, COUNT * sizeof *out);
    for (int i = 0; i < COUNT; i++) {
        out[i].kind = (char)(i + trial_rank), out[i].value = i * 1.5 + trial_rank, out[i].numbers[0] = 77;
        out[i].numbers[1] = i - trial_rank, out[i].numbers[2] = i + trial_rank, out[i].last = (short)(i * 3);
    }
    /* A column of a matrix, sent as such and received as a row. */
    int matrix[20][30], row[20];
    for (int i = 0; i < 20; i++)
        for (int j = 0; j < 30; j++) matrix[i][j] = 100 * i + j + 10000 * trial_rank;
    MUST(MPI_Type_vector(20, 1, 30, MPI_INT, &column));
    MUST(MPI_Type_commit(&column));

    MPI_Request requests[4];
    MUST(MPI_Irecv(posted, COUNT, record, peer, 1, MPI_COMM_WORLD, &requests[0]));
    MUST(MPI_Isend(out, COUNT, record, peer, 1, MPI_COMM_WORLD, &requests[1]));
    MUST(MPI_Isend(out, COUNT, record, peer, 2, MPI_COMM_WORLD, &requests[2]));
    MUST(MPI_Isend(&matrix[0][7], 1, column, peer, 3, MPI_COMM_WORLD, &requests[3]));
    /* Freed types live on in what is pending. */
    MUST(MPI_Type_free(&column));
    trial_hold();
    MPI_Status status;
    int count = 0, elements = 0;
    MUST(MPI_Recv(row, 20, MPI_INT, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < 20; i++) CHECK(row[i] == 100 * i + 7 + 10000 * peer, "row element %d is %d", i, row[i]);
    MUST(MPI_Recv(later, COUNT, record, peer, 2, MPI_COMM_WORLD, &status));
    MUST(MPI_Get_count(&status, record, &count));
    MUST(MPI_Get_elements(&status, record, &elements));
    CHECK(count == COUNT && elements == 5 * COUNT, "%d records, %d elements", count, elements);
    expect(later, peer, "received afterwards");
    MUST(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
    expect(posted, peer, "posted before");
    MUST(MPI_Type_free(&record));
    return trial_finish();
}
