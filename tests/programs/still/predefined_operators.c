/* All predefined operators on all the types they take, after the checkpoint too.
 * trial: ranks=2,3 */
#include "../common.h"

#define INTEGER(type, mpi) \
    do { \
        type in = (type)(trial_rank + 3), out = 0, sum = 0, product = 1, and = (type)~0, or = 0, xor = 0; \
        for (int i = 0; i < trial_size; i++) { \
            type value = (type)(i + 3); \
            sum += value, product *= value, and &= value, or |= value, xor ^= value; \
        } \
        MUST(MPI_Allreduce(&in, &out, 1, mpi, MPI_SUM, MPI_COMM_WORLD)); \
        CHECK(out == sum, "sum of " #mpi); \
        MUST(MPI_Allreduce(&in, &out, 1, mpi, MPI_PROD, MPI_COMM_WORLD)); \
        CHECK(out == product, "product of " #mpi); \
        MUST(MPI_Allreduce(&in, &out, 1, mpi, MPI_MAX, MPI_COMM_WORLD)); \
        CHECK(out == (type)(trial_size + 2), "maximum of " #mpi); \
        MUST(MPI_Allreduce(&in, &out, 1, mpi, MPI_MIN, MPI_COMM_WORLD)); \
        CHECK(out == 3, "minimum of " #mpi); \
        MUST(MPI_Allreduce(&in, &out, 1, mpi, MPI_BAND, MPI_COMM_WORLD)); \
        CHECK(out == and, "band of " #mpi); \
        MUST(MPI_Allreduce(&in, &out, 1, mpi, MPI_BOR, MPI_COMM_WORLD)); \
        CHECK(out == or, "bor of " #mpi); \
        MUST(MPI_Allreduce(&in, &out, 1, mpi, MPI_BXOR, MPI_COMM_WORLD)); \
        CHECK(out == xor, "bxor of " #mpi); \
        MUST(MPI_Allreduce(&in, &out, 1, mpi, MPI_LAND, MPI_COMM_WORLD)); \
        CHECK(out == 1, "land of " #mpi); \
    } while (0)

#define FLOATING(type, mpi) \
    do { \
        type in = (type)(trial_rank + 0.5), out = 0, sum = 0; \
        for (int i = 0; i < trial_size; i++) sum += (type)(i + 0.5); \
        MUST(MPI_Allreduce(&in, &out, 1, mpi, MPI_SUM, MPI_COMM_WORLD)); \
        CHECK(out == sum, "sum of " #mpi); \
        MUST(MPI_Allreduce(&in, &out, 1, mpi, MPI_MAX, MPI_COMM_WORLD)); \
        CHECK(out == (type)(trial_size - 0.5), "maximum of " #mpi); \
    } while (0)

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    for (int round = 0; round < 2; round++) {
        if (round == 1) trial_hold();
        INTEGER(signed char, MPI_SIGNED_CHAR);
        INTEGER(unsigned char, MPI_UNSIGNED_CHAR);
        INTEGER(short, MPI_SHORT);
        INTEGER(unsigned short, MPI_UNSIGNED_SHORT);
        INTEGER(int, MPI_INT);
        INTEGER(unsigned, MPI_UNSIGNED);
        INTEGER(long, MPI_LONG);
        INTEGER(unsigned long, MPI_UNSIGNED_LONG);
        INTEGER(long long, MPI_LONG_LONG);
        INTEGER(unsigned long long, MPI_UNSIGNED_LONG_LONG);
        INTEGER(int8_t, MPI_INT8_T);
        INTEGER(uint16_t, MPI_UINT16_T);
        INTEGER(int32_t, MPI_INT32_T);
        INTEGER(uint64_t, MPI_UINT64_T);
        INTEGER(MPI_Aint, MPI_AINT);
        INTEGER(MPI_Offset, MPI_OFFSET);
        INTEGER(MPI_Count, MPI_COUNT);
        FLOATING(float, MPI_FLOAT);
        FLOATING(double, MPI_DOUBLE);
        FLOATING(long double, MPI_LONG_DOUBLE);

        struct { double value; int index; } place = {10.0 - trial_rank, trial_rank}, found;
        MUST(MPI_Allreduce(&place, &found, 1, MPI_DOUBLE_INT, MPI_MINLOC, MPI_COMM_WORLD));
        CHECK(found.value == 11.0 - trial_size && found.index == trial_size - 1, "minloc: %g at %d", found.value,
              found.index);
        struct { int value; int index; } pair = {7, trial_rank}, best;
        MUST(MPI_Allreduce(&pair, &best, 1, MPI_2INT, MPI_MAXLOC, MPI_COMM_WORLD));
        CHECK(best.value == 7 && best.index == 0, "maxloc: %d at %d", best.value, best.index);
        double _Complex c = trial_rank + 1.0, product;
        MUST(MPI_Allreduce(&c, &product, 1, MPI_C_DOUBLE_COMPLEX, MPI_PROD, MPI_COMM_WORLD));
        CHECK(product == (trial_size == 2 ? 2.0 : 6.0), "complex product");
        _Bool yes = trial_rank == 0, any = 0;
        MUST(MPI_Allreduce(&yes, &any, 1, MPI_C_BOOL, MPI_LOR, MPI_COMM_WORLD));
        CHECK(any, "logical or of booleans");
    }
    return trial_finish();
}
