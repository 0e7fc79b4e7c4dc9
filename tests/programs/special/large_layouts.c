/* Layouts of datatypes with numbers that an int does not hold: distances, lengths, counts and places in vectors, indexed ones, structures and subarrays. Sizes and bounds of all,
 * and bytes that lie gigabytes apart, in memory of which a few pages are touched, sent by some. For an MPI that has such functions.
 * trial: ranks=2 */
#include "../common.h"
#include <sys/mman.h>

#define FAR ((MPI_Count)3000000000)

enum { VECTOR, LONG_VECTOR, MANY_BLOCKS, INDEXED, HINDEXED, BLOCKS, HBLOCKS, STRUCTURE, PART, TURNED, MANY, LAYOUTS };

static const MPI_Count sizes[LAYOUTS] = {6, 2 * FAR, FAR, 5, FAR + 1, 8, 2 * FAR, FAR + 4, 6, 6, FAR};
static const MPI_Count lows[LAYOUTS] = {0, 0, 0, 5, 0, 2, 0, 0, 0, 0, 0};
static const MPI_Count extents[LAYOUTS] = {
    2 * FAR + 2, 3 * FAR, 2 * FAR - 1, FAR - 3, FAR + 8, 2 * FAR + 2, 3 * FAR, FAR + 8, 4 * FAR, 4 * FAR, FAR};

static void make(MPI_Datatype *types) {
    MPI_Count lengths[2] = {2, 3}, places[2] = {FAR, 5}, wide[2] = {FAR, 1}, at[2] = {0, FAR + 7}, near_and_far[2] = {1, FAR}, apart[2] = {0, 2 * FAR};
    MPI_Count one_and_many[2] = {1, FAR}, behind[2] = {0, 8};
    MPI_Datatype both[2] = {MPI_INT, MPI_CHAR};
    MPI_Count whole[2] = {4, FAR}, part[2] = {2, 3}, start[2] = {1, FAR - 5};
    MPI_Count other[2] = {FAR, 4}, piece[2] = {3, 2}, from[2] = {FAR - 5, 1};
    MUST(MPI_Type_vector_c(3, 2, FAR, MPI_CHAR, &types[VECTOR]));
    MUST(MPI_Type_create_hvector_c(2, FAR, 2 * FAR, MPI_CHAR, &types[LONG_VECTOR]));
    MUST(MPI_Type_create_hvector_c(FAR, 1, 2, MPI_CHAR, &types[MANY_BLOCKS]));
    MUST(MPI_Type_indexed_c(2, lengths, places, MPI_CHAR, &types[INDEXED]));
    MUST(MPI_Type_create_hindexed_c(2, wide, at, MPI_CHAR, &types[HINDEXED]));
    MUST(MPI_Type_create_indexed_block_c(2, 2, near_and_far, MPI_SHORT, &types[BLOCKS]));
    MUST(MPI_Type_create_hindexed_block_c(2, FAR, apart, MPI_CHAR, &types[HBLOCKS]));
    MUST(MPI_Type_create_struct_c(2, one_and_many, behind, both, &types[STRUCTURE]));
    MUST(MPI_Type_create_subarray_c(2, whole, part, start, MPI_ORDER_C, MPI_CHAR, &types[PART]));
    MUST(MPI_Type_create_subarray_c(2, other, piece, from, MPI_ORDER_FORTRAN, MPI_CHAR, &types[TURNED]));
    MUST(MPI_Type_contiguous_c(FAR, MPI_CHAR, &types[MANY]));
    for (int i = 0; i < LAYOUTS; i++) MUST(MPI_Type_commit(&types[i]));
}

/* Where the bytes of a layout are that are sent. */
static int bytes_of(int layout, MPI_Count *at) {
    int count = 0;
    switch (layout) {
    case VECTOR:
        for (int i = 0; i < 6; i++) at[count++] = i / 2 * FAR + i % 2;
        break;
    case INDEXED:
        for (int i = 0; i < 5; i++) at[count++] = i < 2 ? FAR + i : 5 + i - 2;
        break;
    case BLOCKS:
        for (int i = 0; i < 8; i++) at[count++] = i < 4 ? 2 + i : 2 * FAR + i - 4;
        break;
    case PART:
    case TURNED:
        for (int i = 0; i < 6; i++) at[count++] = (1 + i / 3) * FAR + FAR - 5 + i % 3;
        break;
    default: break;
    }
    return count;
}

/* What each says that it was made of: the numbers of its constructor. */
static void made_of(MPI_Datatype *types) {
    static const int combiners[LAYOUTS] = {MPI_COMBINER_VECTOR,        MPI_COMBINER_HVECTOR, MPI_COMBINER_HVECTOR,  MPI_COMBINER_INDEXED,
                                           MPI_COMBINER_HINDEXED,      MPI_COMBINER_INDEXED_BLOCK, MPI_COMBINER_HINDEXED_BLOCK, MPI_COMBINER_STRUCT,
                                           MPI_COMBINER_SUBARRAY,      MPI_COMBINER_SUBARRAY, MPI_COMBINER_CONTIGUOUS};
    static const MPI_Count numbers[LAYOUTS][7] = {{3, 3, 2, FAR}, {3, 2, FAR, 2 * FAR}, {3, FAR, 1, 2}, {5, 2, 2, 3, FAR, 5}, {5, 2, FAR, 1, 0, FAR + 7}, {4, 2, 2, 1, FAR},
                                                  {4, 2, FAR, 0, 2 * FAR}, {5, 2, 1, FAR, 0, 8}, {6, 4, FAR, 2, 3, 1, FAR - 5}, {6, FAR, 4, 3, 2, FAR - 5, 1}, {1, FAR}};
    for (int i = 0; i < LAYOUTS; i++) {
        MPI_Count integers = -1, addresses = -1, counts = -1, datatypes = -1, number[6] = {0};
        int combiner = -1, of_array[2] = {0}, parts = i == STRUCTURE ? 2 : 1, array = i == PART || i == TURNED;
        MPI_Datatype of[2];
        MUST(MPI_Type_get_envelope_c(types[i], &integers, &addresses, &counts, &datatypes, &combiner));
        CHECK(combiner == combiners[i], "layout %d: combiner %d", i, combiner);
        CHECK(integers == 2 * array && addresses == 0 && counts == numbers[i][0] && datatypes == parts, "layout %d: %lld, %lld, %lld, %lld", i, (long long)integers,
              (long long)addresses, (long long)counts, (long long)datatypes);
        if (integers > 2 || addresses > 0 || counts > 6 || datatypes > 2) continue;
        MUST(MPI_Type_get_contents_c(types[i], integers, addresses, counts, datatypes, of_array, NULL, number, of));
        for (int k = 0; k < counts; k++) CHECK(number[k] == numbers[i][k + 1], "layout %d, number %d: %lld", i, k, (long long)number[k]);
        if (array) CHECK(of_array[0] == 2 && of_array[1] == (i == PART ? MPI_ORDER_C : MPI_ORDER_FORTRAN), "layout %d: %d, %d", i, of_array[0], of_array[1]);
        MPI_Datatype first = i == STRUCTURE ? MPI_INT : i == BLOCKS ? MPI_SHORT : MPI_CHAR;
        CHECK(of[0] == first && (parts == 1 || of[1] == MPI_CHAR), "layout %d is made of others", i);
        int small = 0;
        CHECK(MPI_Type_get_envelope(types[i], &small, &small, &small, &combiner) != MPI_SUCCESS, "layout %d: an int tells it", i);
    }
}

static void look(MPI_Datatype *types, char *memory) {
    int peer = 1 - trial_rank;
    made_of(types);
    for (int i = 0; i < LAYOUTS; i++) {
        MPI_Count size = -1, low = -1, extent = -1, at[8];
        MUST(MPI_Type_size_c(types[i], &size));
        MUST(MPI_Type_get_extent_c(types[i], &low, &extent));
        CHECK(size == sizes[i] && low == lows[i] && extent == extents[i], "layout %d: %lld bytes, from %lld, %lld wide", i, (long long)size,
              (long long)low, (long long)extent);
        int count = bytes_of(i, at);
        if (!count) continue;
        char got[8] = {0};
        for (int k = 0; k < count; k++) memory[at[k]] = (char)(10 * i + k + trial_rank);
        MPI_Request request;
        MUST(MPI_Irecv(got, 8, MPI_CHAR, peer, i, MPI_COMM_WORLD, &request));
        MUST(MPI_Send(memory, 1, types[i], peer, i, MPI_COMM_WORLD));
        MUST(MPI_Wait(&request, MPI_STATUS_IGNORE));
        for (int k = 0; k < count; k++) CHECK(got[k] == (char)(10 * i + k + peer), "layout %d, byte %d: %d", i, k, got[k]);
        for (int k = 0; k < count; k++) memory[at[k]] = 0;
    }
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    MPI_Datatype types[LAYOUTS];
    MUST(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    char *memory = mmap(NULL, 4 * FAR + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(memory != MAP_FAILED, "%s", "no addresses");
    make(types);
    look(types, memory);
    trial_hold();
    look(types, memory);
    for (int i = 0; i < LAYOUTS; i++) MUST(MPI_Type_free(&types[i]));
    return trial_finish();
}
