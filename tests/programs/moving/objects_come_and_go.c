/* Communicators, groups, types, operators, attributes and infos are made, used and freed without pause.
 * trial: ranks=2,4 safe_states=clock,barrier */
#include "../moving.h"

static int deleted;

static int on_delete(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)value, (void)extra;
    deleted++;
    return MPI_SUCCESS;
}

static void add(void *in, void *inout, int *count, MPI_Datatype *type) {
    (void)type;
    for (int i = 0; i < 2 * *count; i++) ((int *)inout)[i] += ((int *)in)[i];
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    MPI_Comm kept[5];
    int key, expected_deleted = 0;
    for (int i = 0; i < 5; i++) kept[i] = MPI_COMM_NULL;
    MUST(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, on_delete, &key, NULL));
    for (uint64_t round = 0; moving_agree(round, MPI_COMM_WORLD); round++) {
        uint64_t draw = trial_mix(round);
        int slot = (int)(draw % 5), n = trial_size, rank, size;
        if (kept[slot] != MPI_COMM_NULL) {
            MUST(MPI_Comm_free(&kept[slot]));
            expected_deleted++;
        }
        MPI_Comm comm, half;
        MPI_Group group, part;
        MPI_Request request;
        if (draw >> 8 & 1) {
            MUST(MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request));
            MUST(MPI_Wait(&request, MPI_STATUS_IGNORE));
        } else {
            MUST(MPI_Comm_split(MPI_COMM_WORLD, 0, draw >> 9 & 1 ? trial_rank : -trial_rank, &comm));
        }
        MUST(MPI_Comm_set_attr(comm, key, &key));
        MUST(MPI_Comm_dup(comm, &kept[slot]));
        MUST(MPI_Comm_rank(comm, &rank));
        MUST(MPI_Comm_size(comm, &size));
        CHECK(size == n, "round %d: size %d", (int)round, size);
        MUST(MPI_Comm_group(comm, &group));
        int first[1][3] = {{0, (n - 1) / 2, 1}};
        MUST(MPI_Group_range_incl(group, 1, first, &part));
        MUST(MPI_Comm_create(comm, part, &half));
        if (half != MPI_COMM_NULL) {
            int one = 1, sum = 0;
            MUST(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, half));
            CHECK(sum == (n - 1) / 2 + 1, "round %d: half of %d", (int)round, sum);
            MUST(MPI_Comm_free(&half));
        }
        MPI_Datatype pair, spread;
        MPI_Op op;
        MUST(MPI_Type_contiguous(2, MPI_INT, &pair));
        MUST(MPI_Type_vector(3, 1, 2, pair, &spread));
        MUST(MPI_Type_commit(&pair));
        MUST(MPI_Type_commit(&spread));
        MUST(MPI_Op_create(add, 1, &op));
        int values[2] = {rank, (int)(round % 1000)}, sums[2];
        MUST(MPI_Allreduce(values, sums, 1, pair, op, kept[slot]));
        CHECK(sums[0] == n * (n - 1) / 2 && sums[1] == n * (int)(round % 1000), "round %d: sums %d %d", (int)round, sums[0], sums[1]);
        int out[12], in[12], next = (rank + 1) % n, previous = (rank + n - 1) % n;
        for (int i = 0; i < 12; i++) out[i] = 100 * rank + i, in[i] = -1;
        MUST(MPI_Irecv(in, 1, spread, previous, 1, comm, &request));
        MUST(MPI_Send(out, 1, spread, next, 1, comm));
        /* Freed in use. */
        MUST(MPI_Type_free(&spread));
        MUST(MPI_Comm_free(&comm));
        expected_deleted++;
        MUST(MPI_Wait(&request, MPI_STATUS_IGNORE));
        for (int i = 0; i < 10; i++) CHECK(in[i] == (i % 4 < 2 ? 100 * previous + i : -1), "round %d: element %d is %d", (int)round, i, in[i]);
        CHECK(deleted == expected_deleted, "round %d: %d attributes deleted, not %d", (int)round, deleted, expected_deleted);
        MUST(MPI_Op_free(&op));
        MUST(MPI_Type_free(&pair));
        MUST(MPI_Group_free(&part));
        MUST(MPI_Group_free(&group));
    }
    for (int i = 0; i < 5; i++)
        if (kept[i] != MPI_COMM_NULL) MUST(MPI_Comm_free(&kept[i]));
    MUST(MPI_Comm_free_keyval(&key));
    return trial_finish();
}
