/* Attributes of communicators and datatypes are kept, and their copy and delete functions run when they should.
 * trial: ranks=2 */
#include "../common.h"

static int copied, deleted, finalized;

static int copy_comm(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag) {
    (void)comm, (void)key;
    copied += *(int *)extra;
    *(void **)out = (char *)in + 1;
    *flag = 1;
    return MPI_SUCCESS;
}

static int delete_comm(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)value;
    deleted += *(int *)extra;
    return MPI_SUCCESS;
}

static int copy_type(MPI_Datatype type, int key, void *extra, void *in, void *out, int *flag) {
    (void)type, (void)key, (void)extra;
    copied++;
    *(void **)out = in;
    *flag = in != (void *)13;
    return MPI_SUCCESS;
}

static int delete_type(MPI_Datatype type, int key, void *value, void *extra) {
    (void)type, (void)key, (void)value, (void)extra;
    deleted++;
    return MPI_SUCCESS;
}

static int at_the_end(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)extra;
    finalized = finalized * 100 + *(int *)value;
    return MPI_SUCCESS;
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    static int weight = 10, words[] = {77, 78, 79};
    int keys[4], type_key, end_keys[2], flag = 0;
    char base[8], *value = NULL;
    MPI_Comm comm, copy;
    MPI_Datatype type, type_copy;
    MUST(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    MUST(MPI_Comm_create_keyval(copy_comm, delete_comm, &keys[0], &weight));
    MUST(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &keys[1], NULL));
    MUST(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, delete_comm, &keys[2], &weight));
    MUST(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &keys[3], NULL));
    for (int i = 0; i < 3; i++) MUST(MPI_Comm_set_attr(comm, keys[i], &base[i]));
    MUST(MPI_Type_create_keyval(copy_type, delete_type, &type_key, NULL));
    MUST(MPI_Type_contiguous(2, MPI_INT, &type));
    MUST(MPI_Type_set_attr(type, type_key, (void *)13));
    for (int i = 0; i < 2; i++) {
        MUST(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_the_end, &end_keys[i], NULL));
        MUST(MPI_Comm_set_attr(MPI_COMM_WORLD, end_keys[i], &words[2 - i]));
    }
    MUST(MPI_Comm_set_attr(MPI_COMM_SELF, end_keys[0], &words[0]));
    trial_hold();
    for (int i = 0; i < 4; i++) {
        MUST(MPI_Comm_get_attr(comm, keys[i], &value, &flag));
        CHECK(flag == (i < 3) && (!flag || value == &base[i]), "attribute %d: there %d", i, flag);
    }
    MUST(MPI_Comm_dup(comm, &copy));
    CHECK(copied == 10, "copied %d", copied);
    MUST(MPI_Comm_get_attr(copy, keys[0], &value, &flag));
    CHECK(flag && value == &base[1], "the copy function's value");
    MUST(MPI_Comm_get_attr(copy, keys[1], &value, &flag));
    CHECK(!flag, "copied by the null function");
    MUST(MPI_Comm_get_attr(copy, keys[2], &value, &flag));
    CHECK(flag && value == &base[2], "the duplicating function's value");
    MUST(MPI_Comm_delete_attr(comm, keys[0]));
    CHECK(deleted == 10, "deleted %d", deleted);
    MUST(MPI_Comm_set_attr(comm, keys[2], &base[5]));
    CHECK(deleted == 20, "replaced: deleted %d", deleted);
    MUST(MPI_Comm_free_keyval(&keys[2]));
    CHECK(keys[2] == MPI_KEYVAL_INVALID, "freed key is %d", keys[2]);
    MUST(MPI_Comm_free(&copy));
    CHECK(deleted == 40, "communicator freed: deleted %d", deleted);

    MUST(MPI_Type_get_attr(type, type_key, &value, &flag));
    CHECK(flag && value == (void *)13, "attribute of the type");
    copied = deleted = 0;
    MUST(MPI_Type_dup(type, &type_copy));
    MUST(MPI_Type_get_attr(type_copy, type_key, &value, &flag));
    CHECK(!flag && copied == 1, "a refused copy was made");
    /* The first one may live on inside its duplicate until that is freed too. */
    MUST(MPI_Type_free(&type));
    MUST(MPI_Type_free(&type_copy));
    CHECK(deleted == 1, "types freed: deleted %d", deleted);
    MUST(MPI_Comm_free(&comm));

    int *bound = NULL;
    MUST(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &flag));
    CHECK(flag && *bound >= 32767, "MPI_TAG_UB");
    MPI_Finalize();
    /* Those of MPI_COMM_SELF, then those of MPI_COMM_WORLD, the newest first. */
    CHECK(finalized == 777879, "attributes deleted at the end: %d", finalized);
    if (trial_failures) return 1;
    printf("OK %d\n", trial_rank);
    return 0;
}
