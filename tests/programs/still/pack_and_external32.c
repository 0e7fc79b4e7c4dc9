/* Data packed before is unpacked afterwards, in the native and in the external32 representation.
 * trial: ranks=2 */
#include "../common.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int numbers[10], back[10], position = 0, size = 0, bytes = 0;
    double values[4] = {1.5, -2.25, 1e300, 0.0}, values_back[4] = {0};
    char *packed, *external;
    MPI_Aint at = 0, external_size = 0, part = 0;
    MPI_Datatype every_other;
    for (int i = 0; i < 10; i++) numbers[i] = i * 1000 - trial_rank, back[i] = -1;
    MUST(MPI_Type_vector(5, 1, 2, MPI_INT, &every_other));
    MUST(MPI_Type_commit(&every_other));
    MUST(MPI_Pack_size(1, every_other, MPI_COMM_WORLD, &size));
    MUST(MPI_Pack_size(4, MPI_DOUBLE, MPI_COMM_WORLD, &bytes));
    packed = malloc(size + bytes);
    MUST(MPI_Pack(numbers, 1, every_other, packed, size + bytes, &position, MPI_COMM_WORLD));
    MUST(MPI_Pack_external_size("external32", 1, every_other, &part));
    MUST(MPI_Pack_external_size("external32", 4, MPI_DOUBLE, &external_size));
    CHECK(part == 20 && external_size == 32, "external sizes %ld and %ld", (long)part, (long)external_size);
    external_size += part;
    external = malloc(external_size);
    MUST(MPI_Pack_external("external32", numbers, 1, every_other, external, external_size, &at));
    trial_hold();
    /* The second half is packed behind the first. */
    MUST(MPI_Pack(values, 4, MPI_DOUBLE, packed, size + bytes, &position, MPI_COMM_WORLD));
    MUST(MPI_Pack_external("external32", values, 4, MPI_DOUBLE, external, external_size, &at));
    CHECK(at == external_size, "%ld bytes of %ld", (long)at, (long)external_size);
    CHECK((unsigned char)external[4] == ((numbers[2] >> 24) & 255) && (unsigned char)external[7] == (numbers[2] & 255),
          "external32 is big-endian");

    int peer = 1 - trial_rank, length = position, end = 0;
    char *other = malloc(size + bytes);
    MUST(MPI_Sendrecv(packed, position, MPI_PACKED, peer, 1, other, size + bytes, MPI_PACKED, peer, 1, MPI_COMM_WORLD,
                      MPI_STATUS_IGNORE));
    MUST(MPI_Unpack(other, length, &end, back, 1, every_other, MPI_COMM_WORLD));
    MUST(MPI_Unpack(other, length, &end, values_back, 4, MPI_DOUBLE, MPI_COMM_WORLD));
    CHECK(end == length, "unpacked %d bytes of %d", end, length);
    for (int i = 0; i < 10; i++) CHECK(back[i] == (i % 2 ? -1 : i * 1000 - peer), "element %d is %d", i, back[i]);
    CHECK(memcmp(values, values_back, sizeof values) == 0, "values differ");
    at = 0;
    memset(values_back, 0, sizeof values_back);
    MUST(MPI_Unpack_external("external32", external, external_size, &at, back, 1, every_other));
    MUST(MPI_Unpack_external("external32", external, external_size, &at, values_back, 4, MPI_DOUBLE));
    for (int i = 0; i < 10; i += 2) CHECK(back[i] == numbers[i], "external element %d is %d", i, back[i]);
    CHECK(memcmp(values, values_back, sizeof values) == 0, "external values differ");
    MUST(MPI_Type_free(&every_other));
    return trial_finish();
}
