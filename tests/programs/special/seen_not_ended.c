/* What MPI 4.1 asks of requests without ending them, and the removal of error classes, over a checkpoint; and what an MPI says of itself. These functions are looked for by
 * name, since the library that the program was linked to may be older. For an MPI whose ABI has them.
 * trial: ranks=2 */
#include "../newer.h"

typedef int all_of(int, const MPI_Request[], int *, MPI_Status[]);
typedef int any_of(int, const MPI_Request[], int *, int *, MPI_Status *);
typedef int some_of(int, const MPI_Request[], int *, int[], MPI_Status[]);
typedef int of_code(int);
typedef int of_types(MPI_Datatype, MPI_Datatype, MPI_Datatype *);
typedef int of_info(MPI_Info *);

static all_of *all;
static any_of *any;
static some_of *some;

enum { COUNT = 4, SECOND = 2 };

/* Of all requests the third one is over, and the first one null. */
static void one_is_over(MPI_Request *requests) {
    int flag = 0, index = -1, number = -1, indices[COUNT];
    MPI_Status status = {0}, statuses[COUNT];
    while (!flag) MUST(any(COUNT, requests, &index, &flag, &status));
    CHECK(index == SECOND && status.MPI_TAG == SECOND && status.MPI_SOURCE == 1 - trial_rank, "%d, tag %d", index, status.MPI_TAG);
    MUST(all(COUNT, requests, &flag, statuses));
    CHECK(!flag, "%s", "all are over");
    MUST(some(COUNT, requests, &number, indices, statuses));
    CHECK(number == 1 && indices[0] == SECOND && statuses[0].MPI_TAG == SECOND, "%d are over, the first is %d", number, indices[0]);
}

/* A message that is too long for its receive, which is over. */
static void one_has_failed(MPI_Request *failed) {
    int flag = 0, index = -1, number = -1, class = -1;
    MPI_Status status = {0};
    MUST(MPI_Error_class(MPI_Request_get_status(*failed, &flag, &status), &class));
    CHECK(flag && class == MPI_ERR_TRUNCATE && status.MPI_TAG == COUNT, "flag %d, class %d, tag %d", flag, class, status.MPI_TAG);
    flag = 0;
    MUST(MPI_Error_class(any(1, failed, &index, &flag, &status), &class));
    CHECK(flag && index == 0 && class == MPI_ERR_TRUNCATE, "flag %d, class %d", flag, class);
    flag = 0;
    MUST(MPI_Error_class(all(1, failed, &flag, &status), &class));
    CHECK(flag && class == MPI_ERR_IN_STATUS, "flag %d, class %d", flag, class);
    MUST(MPI_Error_class(some(1, failed, &number, &index, &status), &class));
    CHECK(number == 1 && class == MPI_ERR_IN_STATUS, "%d, class %d", number, class);
    MUST(MPI_Error_class(status.MPI_ERROR, &class));
    CHECK(class == MPI_ERR_TRUNCATE, "class %d", class);
    MUST(MPI_Error_class(MPI_Wait(failed, &status), &class));
    CHECK(*failed == MPI_REQUEST_NULL && class == MPI_ERR_TRUNCATE && status.MPI_TAG == COUNT, "class %d, tag %d", class, status.MPI_TAG);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    MUST(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    all = (all_of *)named("MPI_Request_get_status_all");
    any = (any_of *)named("MPI_Request_get_status_any");
    some = (some_of *)named("MPI_Request_get_status_some");
    of_code *no_class = (of_code *)named("MPI_Remove_error_class"), *no_code = (of_code *)named("MPI_Remove_error_code");
    of_code *no_text = (of_code *)named("MPI_Remove_error_string");

    MPI_Request requests[COUNT] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status statuses[COUNT];
    int flag = 0, index = 0, number = 0, indices[COUNT], in[COUNT] = {-1, -1, -1, -1}, other = 1 - trial_rank;
    MUST(all(COUNT, requests, &flag, statuses));
    CHECK(flag && statuses[3].MPI_TAG == MPI_ANY_TAG && statuses[3].MPI_SOURCE == MPI_ANY_SOURCE, "tag %d", statuses[3].MPI_TAG);
    MUST(any(COUNT, requests, &index, &flag, MPI_STATUS_IGNORE));
    CHECK(flag && index == MPI_UNDEFINED, "%d", index);
    MUST(some(COUNT, requests, &number, indices, MPI_STATUSES_IGNORE));
    CHECK(number == MPI_UNDEFINED, "%d", number);
    CHECK(all(-1, requests, &flag, statuses) != MPI_SUCCESS, "%s", "as many as that");

    for (int i = 1; i < COUNT; i++) MUST(MPI_Irecv(&in[i], 1, MPI_INT, other, i, MPI_COMM_WORLD, &requests[i]));
    for (int i = 1; i < COUNT; i++) {
        int out = 100 * trial_rank + i;
        if (i == SECOND) MUST(MPI_Send(&out, 1, MPI_INT, other, i, MPI_COMM_WORLD));
    }
    one_is_over(requests);
    MPI_Request failed;
    int too_long[2] = {1, 2}, little = 0;
    MUST(MPI_Irecv(&little, 1, MPI_INT, other, COUNT, MPI_COMM_WORLD, &failed));
    MUST(MPI_Send(too_long, 2, MPI_INT, other, COUNT, MPI_COMM_WORLD));
    for (flag = 0; !flag;) MPI_Request_get_status(failed, &flag, MPI_STATUS_IGNORE);
    int class, code, text_length;
    char text[MPI_MAX_ERROR_STRING];
    MUST(MPI_Add_error_class(&class));
    MUST(MPI_Add_error_code(class, &code));
    MUST(MPI_Add_error_string(code, "a text"));

    trial_ready();
    trial_wait();

    one_is_over(requests);
    one_has_failed(&failed);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 1; i < COUNT; i++) {
        int out = 100 * trial_rank + i;
        if (i != SECOND) MUST(MPI_Send(&out, 1, MPI_INT, other, i, MPI_COMM_WORLD));
    }
    for (flag = 0; !flag;) MUST(all(COUNT, requests, &flag, statuses));
    /* None has been ended: they say the same again. */
    MUST(all(COUNT, requests, &flag, statuses));
    CHECK(flag, "%s", "no more");
    for (int i = 1; i < COUNT; i++) CHECK(statuses[i].MPI_TAG == i && in[i] == 100 * other + i, "%d: tag %d, got %d", i, statuses[i].MPI_TAG, in[i]);
    CHECK(statuses[0].MPI_TAG == MPI_ANY_TAG, "tag %d", statuses[0].MPI_TAG);
    MUST(some(COUNT, requests, &number, indices, statuses));
    CHECK(number == COUNT - 1 && indices[0] == 1, "%d", number);
    MUST(MPI_Waitall(COUNT, requests, statuses));
    for (int i = 1; i < COUNT; i++) CHECK(statuses[i].MPI_TAG == i, "%d: tag %d", i, statuses[i].MPI_TAG);

    /* A class has a code, and the code a text: the text goes first. */
    CHECK(no_class(class) != MPI_SUCCESS && no_code(code) != MPI_SUCCESS && no_code(class) != MPI_SUCCESS, "%s", "in use");
    MUST(no_text(code));
    MUST(MPI_Error_string(code, text, &text_length));
    CHECK(text_length == 0, "%s", text);
    CHECK(no_class(code) != MPI_SUCCESS && no_class(class) != MPI_SUCCESS, "%s", "in use");
    MUST(no_code(code));
    MUST(no_class(class));
    CHECK(no_class(class) != MPI_SUCCESS && no_code(code) != MPI_SUCCESS && no_text(code) != MPI_SUCCESS && no_text(0) != MPI_SUCCESS, "%s", "gone");

    of_types *pair_of = (of_types *)named("MPI_Type_get_value_index");
    MPI_Datatype pair;
    MUST(pair_of(MPI_DOUBLE, MPI_INT, &pair));
    CHECK(pair == MPI_DOUBLE_INT, "%s", "another pair");
    MUST(pair_of(MPI_INT, MPI_INT, &pair));
    CHECK(pair == MPI_2INT, "%s", "another pair");
    MUST(pair_of(MPI_INT, MPI_DOUBLE, &pair));
    CHECK(pair == MPI_DATATYPE_NULL, "%s", "such a pair");
    CHECK(pair_of(MPI_DATATYPE_NULL, MPI_INT, &pair) != MPI_SUCCESS, "%s", "a pair of nothing");

    MPI_Info info;
    char size[16];
    MUST(((of_info *)named("MPI_Abi_get_info"))(&info));
    MUST(MPI_Info_get(info, "mpi_aint_size", sizeof size - 1, size, &flag));
    CHECK(flag && atoi(size) == (int)sizeof(MPI_Aint), "%s", size);
    MUST(MPI_Info_free(&info));
    MUST(((of_info *)named("MPI_Get_hw_resource_info"))(&info));
    MUST(MPI_Info_get_nkeys(info, &number));
    CHECK(number == 0, "%d", number);
    MUST(MPI_Info_free(&info));
    MUST(((of_info *)named("MPI_Abi_get_fortran_info"))(&info));
    CHECK(info == MPI_INFO_NULL, "%s", "an info");
    return trial_finish();
}
