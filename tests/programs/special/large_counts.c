/* Functions that MPI-4 has more than MPI-3, large counts above all: messages, collective operations with their lists of counts, one begun and one persistent over a checkpoint, datatypes, operators
 * and packing. Sizes that an int does not hold are told right. For an MPI that has such functions.
 * trial: ranks=2,3 */
#include "../common.h"

enum { MOST = 8 };

static void longest(void *in, void *out, MPI_Count *count, MPI_Datatype *type) {
    (void)type;
    for (MPI_Count i = 0; i < *count; i++) {
        int *mine = (int *)out + i, *other = (int *)in + i;
        if (*other > *mine) *mine = *other;
    }
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int size = trial_size, rank = trial_rank, next = (rank + 1) % size, previous = (rank + size - 1) % size;
    int out[MOST * 4], in[MOST * 4], later[MOST * 4], again[MOST * 4];
    for (int i = 0; i < MOST * 4; i++) out[i] = 1000 * rank + i, in[i] = later[i] = again[i] = -1;

    MPI_Status status;
    MPI_Count count = -1, bytes = -1;
    MPI_Request request, persistent;
    MUST(MPI_Irecv_c(in, MOST, MPI_INT, previous, 3, MPI_COMM_WORLD, &request));
    MUST(MPI_Send_c(out, 5, MPI_INT, next, 3, MPI_COMM_WORLD));
    MUST(MPI_Wait(&request, &status));
    MUST(MPI_Get_count_c(&status, MPI_INT, &count));
    CHECK(count == 5 && in[4] == 1000 * previous + 4, "%lld elements, %d", (long long)count, in[4]);
    MUST(MPI_Get_elements_c(&status, MPI_BYTE, &bytes));
    CHECK(bytes == 20, "%lld bytes", (long long)bytes);

    /* Each sends its rank and one more to each. */
    MPI_Count counts[MOST], from[MOST];
    MPI_Aint places[MOST], where[MOST];
    for (int i = 0; i < size; i++) counts[i] = rank + 1, from[i] = i + 1, places[i] = 2 * i, where[i] = MOST / 2 * i;
    MUST(MPI_Alltoallv_c(out, counts, places, MPI_INT, in, from, where, MPI_INT, MPI_COMM_WORLD));
    for (int i = 0; i < size; i++) CHECK(in[where[i]] == 1000 * i + 2 * rank, "from %d: %d", i, in[where[i]]);
    MPI_Count *lists = malloc(2 * MOST * sizeof *lists);
    MPI_Aint *at = malloc(2 * MOST * sizeof *at);
    memcpy(lists, counts, sizeof counts), memcpy(lists + MOST, from, sizeof from);
    memcpy(at, places, sizeof places), memcpy(at + MOST, where, sizeof where);
    MUST(MPI_Allgatherv_init_c(out, rank + 1, MPI_INT, again, lists + MOST, at + MOST, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &persistent));
    MUST(MPI_Ialltoallv_c(out, lists, at, MPI_INT, later, lists + MOST, at + MOST, MPI_INT, MPI_COMM_WORLD, &request));

    /* Four times as many as an int holds, and three more. */
    MPI_Datatype many, vector;
    MPI_Count wide = 4 * (MPI_Count)INT_MAX + 3, lower = -1, extent = -1;
    MUST(MPI_Type_contiguous_c(wide, MPI_DOUBLE, &many));
    MUST(MPI_Type_commit(&many));
    MUST(MPI_Type_vector_c(3, 2, 4, MPI_INT, &vector));
    MUST(MPI_Type_commit(&vector));
    MPI_Op op;
    MUST(MPI_Op_create_c(longest, 1, &op));

    /* And what MPI-4 has beside them. */
    int turned = 7 + rank, got = -1;
    MPI_Request both[2];
    MUST(MPI_Isendrecv(&out[1], 1, MPI_INT, next, 11, &got, 1, MPI_INT, previous, 11, MPI_COMM_WORLD, &both[0]));
    MUST(MPI_Isendrecv_replace(&turned, 1, MPI_INT, next, 12, previous, 12, MPI_COMM_WORLD, &both[1]));

    trial_ready();
    trial_wait();

    MUST(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    CHECK(got == 1000 * previous + 1 && turned == 7 + previous, "got %d, turned to %d", got, turned);
    MUST(MPI_Type_size_c(many, &bytes));
    CHECK(bytes == 8 * wide, "%lld bytes", (long long)bytes);
    MUST(MPI_Type_get_extent_c(many, &lower, &extent));
    CHECK(lower == 0 && extent == 8 * wide, "from %lld, %lld wide", (long long)lower, (long long)extent);
    int small = 0;
    MUST(MPI_Type_size(many, &small));
    CHECK(small == MPI_UNDEFINED, "%d", small);
    MUST(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int i = 0; i < size; i++) CHECK(later[where[i]] == 1000 * i + 2 * rank, "later, from %d: %d", i, later[where[i]]);
    MUST(MPI_Start(&persistent));
    MUST(MPI_Wait(&persistent, MPI_STATUS_IGNORE));
    for (int i = 0; i < size; i++) CHECK(again[where[i] + i] == 1000 * i + i, "again, from %d: %d", i, again[where[i] + i]);
    MUST(MPI_Request_free(&persistent));
    MUST(MPI_Allreduce_c(out, in, 4, MPI_INT, op, MPI_COMM_WORLD));
    CHECK(in[3] == 1000 * (size - 1) + 3, "the longest is %d", in[3]);
    MUST(MPI_Op_free(&op));

    char packed[256];
    MPI_Count room = 0, position = 0;
    MUST(MPI_Pack_size_c(1, vector, MPI_COMM_WORLD, &room));
    CHECK(room >= 24 && room <= (MPI_Count)sizeof packed, "%lld bytes to pack", (long long)room);
    MUST(MPI_Pack_c(out, 1, vector, packed, sizeof packed, &position, MPI_COMM_WORLD));
    CHECK(position >= 24, "packed to %lld", (long long)position);
    bytes = position, position = 0;
    MUST(MPI_Unpack_c(packed, bytes, &position, in, 6, MPI_INT, MPI_COMM_WORLD));
    CHECK(in[2] == out[4] && in[5] == out[9], "unpacked %d and %d", in[2], in[5]);
    MPI_Count integers = -1, addresses = -1, large = -1, types = -1;
    int combiner = -1, contents[3] = {0};
    MPI_Datatype of;
    MUST(MPI_Type_get_envelope_c(vector, &integers, &addresses, &large, &types, &combiner));
    CHECK(combiner == MPI_COMBINER_VECTOR && integers + large == 3 && types == 1, "combiner %d", combiner);
    if (integers == 3) {
        MUST(MPI_Type_get_contents_c(vector, 3, 0, 0, 1, contents, NULL, NULL, &of));
        CHECK(contents[0] == 3 && contents[1] == 2 && contents[2] == 4 && of == MPI_INT, "contents");
    }
    MUST(MPI_Type_free(&many));
    MUST(MPI_Type_free(&vector));
    free(lists), free(at);
    return trial_finish();
}
