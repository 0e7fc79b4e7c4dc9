/* Names of communicators and datatypes, and info objects with their keys in order, are kept.
 * trial: ranks=2 */
#include "../common.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    MPI_Comm comm;
    MPI_Datatype type;
    MPI_Info info, copy;
    char text[MPI_MAX_OBJECT_NAME + 64];
    int length = 0, flag = 0, count = 0;
    MUST(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    MUST(MPI_Comm_set_name(comm, "halo exchange"));
    MUST(MPI_Comm_set_name(MPI_COMM_SELF, "myself"));
    MUST(MPI_Type_contiguous(3, MPI_DOUBLE, &type));
    MUST(MPI_Type_set_name(type, "point"));
    MUST(MPI_Info_create(&info));
    for (int i = 0; i < 20; i++) {
        char key[16], value[32];
        snprintf(key, sizeof key, "key%d", i);
        snprintf(value, sizeof value, "value %d of %d", i * i, trial_rank);
        MUST(MPI_Info_set(info, key, value));
    }
    MUST(MPI_Info_delete(info, "key7"));
    trial_hold();
    MUST(MPI_Comm_get_name(comm, text, &length));
    CHECK(strcmp(text, "halo exchange") == 0 && length == 13, "name '%s'", text);
    MUST(MPI_Comm_get_name(MPI_COMM_SELF, text, &length));
    CHECK(strcmp(text, "myself") == 0, "name '%s'", text);
    MUST(MPI_Comm_get_name(MPI_COMM_WORLD, text, &length));
    CHECK(strcmp(text, "MPI_COMM_WORLD") == 0, "name '%s'", text);
    MUST(MPI_Type_get_name(type, text, &length));
    CHECK(strcmp(text, "point") == 0, "name '%s'", text);
    MUST(MPI_Type_get_name(MPI_DOUBLE, text, &length));
    CHECK(strcmp(text, "MPI_DOUBLE") == 0, "name '%s'", text);
    MUST(MPI_Info_get_nkeys(info, &count));
    CHECK(count == 19, "%d keys", count);
    MUST(MPI_Info_get(info, "key7", 64, text, &flag));
    CHECK(!flag, "a deleted key is there");
    MUST(MPI_Info_dup(info, &copy));
    for (int i = 0, n = 0; i < 20; i++) {
        if (i == 7) continue;
        char key[MPI_MAX_INFO_KEY], wanted[16], value[32];
        snprintf(wanted, sizeof wanted, "key%d", i);
        snprintf(value, sizeof value, "value %d of %d", i * i, trial_rank);
        MUST(MPI_Info_get_nthkey(copy, n++, key));
        CHECK(strcmp(key, wanted) == 0, "key %d is '%s'", n - 1, key);
        MUST(MPI_Info_get(info, wanted, 64, text, &flag));
        CHECK(flag && strcmp(text, value) == 0, "%s is '%s'", wanted, text);
        MUST(MPI_Info_get_valuelen(info, wanted, &length, &flag));
        CHECK(flag && length == (int)strlen(value), "%s has %d characters", wanted, length);
    }
    MUST(MPI_Info_set(info, "key7", "again"));
    MUST(MPI_Info_get_nkeys(copy, &count));
    CHECK(count == 19, "the duplicate has %d keys", count);
    MUST(MPI_Info_free(&copy));
    MUST(MPI_Info_free(&info));
    CHECK(info == MPI_INFO_NULL, "freed, not null");
    MUST(MPI_Type_free(&type));
    MUST(MPI_Comm_free(&comm));
    return trial_finish();
}
