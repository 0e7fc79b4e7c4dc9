/* Datatypes made by every constructor still describe the same bytes afterwards, and say how they were made.
 * trial: ranks=2 */
#include "../common.h"
#include <stddef.h>

#define KINDS 17
#define ROOM 4096

static const char *const names[KINDS] = {"contiguous", "vector", "hvector", "indexed", "hindexed", "indexed_block",
                                         "hindexed_block", "struct", "subarray", "darray", "resized", "dup", "nested",
                                         "from a freed one", "f90 integer", "negative stride", "struct of structs"};

static void make(MPI_Datatype *types) {
    int lengths[3] = {2, 1, 3}, places[3] = {0, 4, 7}, sizes[2] = {8, 10}, sub[2] = {3, 4}, at[2] = {2, 5};
    MPI_Aint bytes[3] = {0, 24, 40};
    MPI_Datatype mixed[3] = {MPI_INT, MPI_DOUBLE, MPI_CHAR}, inner;
    MUST(MPI_Type_contiguous(5, MPI_INT, &types[0]));
    MUST(MPI_Type_vector(4, 2, 5, MPI_SHORT, &types[1]));
    MUST(MPI_Type_create_hvector(3, 2, 36, MPI_DOUBLE, &types[2]));
    MUST(MPI_Type_indexed(3, lengths, places, MPI_INT, &types[3]));
    MUST(MPI_Type_create_hindexed(3, lengths, bytes, MPI_INT, &types[4]));
    MUST(MPI_Type_create_indexed_block(3, 2, places, MPI_FLOAT, &types[5]));
    MUST(MPI_Type_create_hindexed_block(3, 2, bytes, MPI_INT, &types[6]));
    MUST(MPI_Type_create_struct(3, lengths, bytes, mixed, &types[7]));
    MUST(MPI_Type_create_subarray(2, sizes, sub, at, MPI_ORDER_C, MPI_INT, &types[8]));
    int distributions[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
    int arguments[2] = {MPI_DISTRIBUTE_DFLT_DARG, 2}, processes[2] = {2, 2};
    MUST(MPI_Type_create_darray(4, 1, 2, sizes, distributions, arguments, processes, MPI_ORDER_FORTRAN, MPI_INT,
                                &types[9]));
    MUST(MPI_Type_create_resized(types[3], -8, 64, &types[10]));
    MUST(MPI_Type_dup(types[7], &types[11]));
    MUST(MPI_Type_vector(2, 3, 4, types[10], &types[12]));
    MUST(MPI_Type_contiguous(2, types[1], &inner));
    MUST(MPI_Type_create_hvector(2, 1, 200, inner, &types[13]));
    MUST(MPI_Type_free(&inner));
    MUST(MPI_Type_create_f90_integer(9, &types[14]));
    MUST(MPI_Type_vector(3, 1, -2, MPI_INT, &types[15]));
    MPI_Datatype parts[3] = {types[7], types[1], types[15]};
    MPI_Aint far[3] = {0, 400, 900};
    MUST(MPI_Type_create_struct(3, lengths, far, parts, &types[16]));
    for (int i = 0; i < KINDS; i++)
        if (i != 14) MUST(MPI_Type_commit(&types[i]));
}

/* What a type picks out of a buffer, and the numbers that describe it. */
static uint64_t fingerprint(MPI_Datatype type) {
    static char buffer[ROOM], packed[ROOM];
    trial_fill(buffer, ROOM, 321);
    memset(packed, 0, ROOM);
    int size = -1, position = 0;
    MPI_Aint low = 0, extent = 0, true_low = 0, true_extent = 0;
    MUST(MPI_Type_size(type, &size));
    MUST(MPI_Type_get_extent(type, &low, &extent));
    MUST(MPI_Type_get_true_extent(type, &true_low, &true_extent));
    MUST(MPI_Pack(buffer + 1024, 2, type, packed, ROOM, &position, MPI_COMM_SELF));
    uint64_t hash = trial_mix(size) ^ trial_mix(low * 3) ^ trial_mix(extent * 5) ^ trial_mix(true_low * 7) ^
                    trial_mix(true_extent * 11) ^ trial_mix(position * 13);
    for (int i = 0; i < position; i++) hash = trial_mix(hash ^ (unsigned char)packed[i]);
    return hash;
}

static uint64_t envelope(MPI_Datatype type) {
    int integers = 0, addresses = 0, types = 0, combiner = 0, i[64];
    MPI_Aint a[64];
    MPI_Datatype t[64];
    MUST(MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner));
    uint64_t hash = trial_mix(combiner * 1000 + integers * 100 + addresses * 10 + types);
    if (combiner == MPI_COMBINER_NAMED) return hash;
    MUST(MPI_Type_get_contents(type, integers, addresses, types, i, a, t));
    for (int k = 0; k < integers; k++) hash = trial_mix(hash + i[k]);
    for (int k = 0; k < addresses; k++) hash = trial_mix(hash + a[k]);
    for (int k = 0; k < types; k++) {
        int inner = 0;
        hash = trial_mix(hash + envelope(t[k]));
        int dummy;
        MUST(MPI_Type_get_envelope(t[k], &dummy, &dummy, &dummy, &inner));
        if (inner != MPI_COMBINER_NAMED && inner != MPI_COMBINER_F90_INTEGER) MUST(MPI_Type_free(&t[k]));
        else if (inner == MPI_COMBINER_NAMED && t[k] != MPI_INT) hash++;
    }
    return hash;
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    MPI_Datatype types[KINDS];
    uint64_t prints[KINDS], envelopes[KINDS];
    make(types);
    for (int i = 0; i < KINDS; i++) prints[i] = fingerprint(types[i]), envelopes[i] = envelope(types[i]);
    trial_hold();
    for (int i = 0; i < KINDS; i++) {
        CHECK(fingerprint(types[i]) == prints[i], "%s describes something else", names[i]);
        CHECK(envelope(types[i]) == envelopes[i], "%s was made otherwise", names[i]);
    }
    /* They carry messages; what is received is what is packed. */
    int peer = 1 - trial_rank;
    for (int i = 0; i < KINDS; i++) {
        static char out[ROOM], in[ROOM], a[ROOM], b[ROOM];
        trial_fill(out, ROOM, 50 + peer * i);
        memset(in, 0x11, ROOM);
        int size = 0, at_a = 0, at_b = 0;
        MUST(MPI_Type_size(types[i], &size));
        MUST(MPI_Pack(out + 1024, 2, types[i], a, ROOM, &at_a, MPI_COMM_WORLD));
        char mine[ROOM];
        trial_fill(mine, ROOM, 50 + trial_rank * i);
        MUST(MPI_Sendrecv(mine + 1024, 2, types[i], peer, i, in + 1024, 2, types[i], peer, i, MPI_COMM_WORLD,
                          MPI_STATUS_IGNORE));
        MUST(MPI_Pack(in + 1024, 2, types[i], b, ROOM, &at_b, MPI_COMM_WORLD));
        CHECK(at_a == 2 * size && at_a == at_b && memcmp(a, b, at_a) == 0, "%s: %d bytes differ", names[i], at_a);
    }
    MPI_Datatype again[KINDS];
    make(again);
    for (int i = 0; i < KINDS; i++) {
        CHECK(fingerprint(again[i]) == prints[i], "%s made anew describes something else", names[i]);
        if (i == 14) {
            CHECK(again[i] == types[i], "the Fortran type is another one");
            continue;
        }
        MUST(MPI_Type_free(&again[i]));
        MUST(MPI_Type_free(&types[i]));
        CHECK(types[i] == MPI_DATATYPE_NULL, "freed, not null");
    }
    return trial_finish();
}
