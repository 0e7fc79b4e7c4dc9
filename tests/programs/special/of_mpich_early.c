/* What MPICH allows and Open MPI does not, and what it says of itself on every communicator.
 * trial: ranks=2 */
#include "../common.h"

static int deleted;
static int on_delete(MPI_Comm comm, int key, void *value, void *state) {
    (void)comm, (void)key, (void)value, (void)state;
    return deleted++, MPI_SUCCESS;
}

/* A communicator from a session's group, as the functions of MPI 4. */
static void of_session(void) {
#if MPI_VERSION >= 4
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    int *bound = NULL, flag = 0;
    MUST(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    MUST(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    MUST(MPI_Comm_create_from_group(group, "a", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    MUST(MPI_Comm_get_attr(comm, MPI_TAG_UB, &bound, &flag));
    CHECK(flag && *bound >= 32767, "flag %d", flag);
    MUST(MPI_Comm_free(&comm));
    MUST(MPI_Group_free(&group));
    MUST(MPI_Session_finalize(&session));
#endif
}

int main(int argc, char **argv) {
    int class = -1, length = 0, *bound = NULL, flag = 0, key, room;
    char text[MPI_MAX_ERROR_STRING] = "";
    /* Before MPI is there. */
    CHECK(MPI_Error_class(MPI_ERR_TAG, &class) == MPI_SUCCESS && class == MPI_ERR_TAG, "class %d", class);
    CHECK(MPI_Error_string(MPI_ERR_TAG, text, &length) == MPI_SUCCESS && length > 0, "length %d", length);
    trial_start(&argc, &argv);
    of_session();
    MUST(MPI_Comm_get_attr(MPI_COMM_SELF, MPI_TAG_UB, &bound, &flag));
    CHECK(flag && *bound >= 32767, "flag %d", flag);
    MUST(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &key, NULL));
    MUST(MPI_Comm_delete_attr(MPI_COMM_SELF, key));
    CHECK(deleted == 0, "deleted %d", deleted);
    /* The empty status of a null request has no error. */
    MPI_Status status = {.MPI_ERROR = 77};
    MUST(MPI_Request_get_status(MPI_REQUEST_NULL, &flag, &status));
    CHECK(flag && status.MPI_ERROR == MPI_SUCCESS && status.MPI_SOURCE == MPI_ANY_SOURCE, "flag %d, error %d", flag, status.MPI_ERROR);
    MPI_Info info;
    char value[8] = "full";
    MUST(MPI_Info_create(&info));
    MUST(MPI_Info_set(info, "empty", ""));
    /* Given to the library, whichever that is. */
    MPI_Comm copy;
    MUST(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &copy));
    trial_hold();
    MUST(MPI_Info_get(info, "empty", sizeof value - 1, value, &flag));
    CHECK(flag && value[0] == '\0', "flag %d, value %s", flag, value);
    MUST(MPI_Comm_get_attr(copy, MPI_TAG_UB, &bound, &room));
    CHECK(room && *bound >= 32767, "flag %d", room);
    MUST(MPI_Comm_free(&copy));
    MUST(MPI_Info_free(&info));
    return trial_finish();
}
