/* MPI's own objects and messages, beside everything else. All ranks do the same. */
#include "feature.h"

static int chaos_right(void) { return (trial_rank + 1) % trial_size; }
static int chaos_left(void) { return (trial_rank + trial_size - 1) % trial_size; }

static int late_value;
static MPI_Request late_receive;
CARRIED(receive_that_waits)
SET(receive_that_waits) { MUST(MPI_Irecv(&late_value, 1, MPI_INT, chaos_left(), 901, MPI_COMM_WORLD, &late_receive)); }
AFTER(receive_that_waits) {
    int value = 10 + trial_rank;
    MUST(MPI_Send(&value, 1, MPI_INT, chaos_right(), 901, MPI_COMM_WORLD));
    MUST(MPI_Wait(&late_receive, MPI_STATUS_IGNORE));
    CHECK(late_value == 10 + chaos_left(), "%d", late_value);
}

static MPI_Request early_send;
static char early_bytes[100000];
CARRIED(message_that_is_under_way)
SET(message_that_is_under_way) {
    trial_fill(early_bytes, sizeof early_bytes, 60 + (uint64_t)trial_rank);
    MUST(MPI_Isend(early_bytes, sizeof early_bytes, MPI_BYTE, chaos_right(), 902, MPI_COMM_WORLD, &early_send));
}
AFTER(message_that_is_under_way) {
    static char got[100000];
    MPI_Status status;
    int count = 0;
    MUST(MPI_Recv(got, sizeof got, MPI_BYTE, MPI_ANY_SOURCE, 902, MPI_COMM_WORLD, &status));
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK(count == sizeof got && status.MPI_SOURCE == chaos_left(), "%d bytes from %d", count, status.MPI_SOURCE);
    CHECK(trial_differs(got, sizeof got, 60 + (uint64_t)chaos_left()) < 0, "contents");
    MUST(MPI_Wait(&early_send, MPI_STATUS_IGNORE));
}

static MPI_Request sum_request;
static int sum_input, sum_result;
CARRIED(sum_that_is_under_way)
SET(sum_that_is_under_way) {
    sum_input = trial_rank + 1;
    MUST(MPI_Iallreduce(&sum_input, &sum_result, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &sum_request));
}
AFTER(sum_that_is_under_way) {
    MUST(MPI_Wait(&sum_request, MPI_STATUS_IGNORE));
    CHECK(sum_result == trial_size * (trial_size + 1) / 2, "%d", sum_result);
}

static MPI_Request persistent[2];
static int persistent_out, persistent_in;
CARRIED(persistent_requests)
SET(persistent_requests) {
    MUST(MPI_Send_init(&persistent_out, 1, MPI_INT, chaos_right(), 903, MPI_COMM_WORLD, &persistent[0]));
    MUST(MPI_Recv_init(&persistent_in, 1, MPI_INT, chaos_left(), 903, MPI_COMM_WORLD, &persistent[1]));
    persistent_out = 500 + trial_rank;
    MUST(MPI_Startall(2, persistent));
}
AFTER(persistent_requests) {
    MUST(MPI_Waitall(2, persistent, MPI_STATUSES_IGNORE));
    CHECK(persistent_in == 500 + chaos_left(), "%d", persistent_in);
    persistent_out = 600 + trial_rank;
    MUST(MPI_Startall(2, persistent));
    MUST(MPI_Waitall(2, persistent, MPI_STATUSES_IGNORE));
    CHECK(persistent_in == 600 + chaos_left(), "%d", persistent_in);
    MPI_Request_free(&persistent[0]);
    MPI_Request_free(&persistent[1]);
}

static MPI_Comm halves;
CARRIED(communicator_of_half_the_ranks)
SET(communicator_of_half_the_ranks) {
    MUST(MPI_Comm_split(MPI_COMM_WORLD, trial_rank % 2, -trial_rank, &halves));
    MUST(MPI_Comm_set_name(halves, "one half"));
}
AFTER(communicator_of_half_the_ranks) {
    char name[MPI_MAX_OBJECT_NAME];
    int length, rank, size, one = 1, sum = 0;
    MPI_Comm_get_name(halves, name, &length);
    MPI_Comm_rank(halves, &rank);
    MPI_Comm_size(halves, &size);
    MUST(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, halves));
    CHECK(strcmp(name, "one half") == 0 && sum == size && rank == size - 1 - trial_rank / 2, "'%s', %d of %d", name, rank, size);
    MUST(MPI_Comm_free(&halves));
}

static MPI_Comm torus;
CARRIED(grid_of_ranks)
SET(grid_of_ranks) {
    int sides[1] = {trial_size}, around[1] = {1};
    MUST(MPI_Cart_create(MPI_COMM_WORLD, 1, sides, around, 0, &torus));
}
AFTER(grid_of_ranks) {
    int from, to, got = -1;
    MUST(MPI_Cart_shift(torus, 0, 1, &from, &to));
    CHECK(from == chaos_left() && to == chaos_right(), "%d, %d", from, to);
    MUST(MPI_Sendrecv(&trial_rank, 1, MPI_INT, to, 904, &got, 1, MPI_INT, from, 904, torus, MPI_STATUS_IGNORE));
    CHECK(got == chaos_left(), "%d", got);
    MUST(MPI_Comm_free(&torus));
}

static MPI_Datatype column;
CARRIED(datatype_of_a_column)
SET(datatype_of_a_column) {
    MUST(MPI_Type_vector(4, 1, 5, MPI_INT, &column));
    MUST(MPI_Type_commit(&column));
}
AFTER(datatype_of_a_column) {
    int matrix[4][5], got[4] = {0};
    for (int i = 0; i < 20; i++) matrix[i / 5][i % 5] = 100 * trial_rank + i;
    MUST(MPI_Sendrecv(&matrix[0][2], 1, column, chaos_right(), 905, got, 4, MPI_INT, chaos_left(), 905, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < 4; i++) CHECK(got[i] == 100 * chaos_left() + 5 * i + 2, "%d", got[i]);
    MUST(MPI_Type_free(&column));
}

static void larger(void *in, void *inout, int *count, MPI_Datatype *type) {
    (void)type;
    for (int i = 0; i < *count; i++)
        if (((int *)in)[i] > ((int *)inout)[i]) ((int *)inout)[i] = ((int *)in)[i];
}
static MPI_Op own_operator;
CARRIED(operator_of_ones_own)
SET(operator_of_ones_own) { MUST(MPI_Op_create(larger, 1, &own_operator)); }
AFTER(operator_of_ones_own) {
    int largest = -1;
    MUST(MPI_Allreduce(&trial_rank, &largest, 1, MPI_INT, own_operator, MPI_COMM_WORLD));
    CHECK(largest == trial_size - 1, "%d", largest);
    MUST(MPI_Op_free(&own_operator));
}

static int attribute_key, attribute_value = 42, attributes_deleted;
static int delete_attribute(MPI_Comm communicator, int number, void *value, void *extra) {
    (void)communicator, (void)number, (void)extra;
    attributes_deleted += *(int *)value;
    return MPI_SUCCESS;
}
CARRIED(attribute_with_a_callback)
SET(attribute_with_a_callback) {
    MUST(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_attribute, &attribute_key, NULL));
    MUST(MPI_Comm_set_attr(MPI_COMM_SELF, attribute_key, &attribute_value));
}
AFTER(attribute_with_a_callback) {
    int *value = NULL, there = 0;
    MUST(MPI_Comm_get_attr(MPI_COMM_SELF, attribute_key, &value, &there));
    CHECK(there && value == &attribute_value, "%p", (void *)value);
    MUST(MPI_Comm_delete_attr(MPI_COMM_SELF, attribute_key));
    CHECK(attributes_deleted == 42, "%d", attributes_deleted);
    MUST(MPI_Comm_free_keyval(&attribute_key));
}

static MPI_Info hints;
CARRIED(info_with_hints)
SET(info_with_hints) {
    MUST(MPI_Info_create(&hints));
    MUST(MPI_Info_set(hints, "chaos", "complete"));
}
AFTER(info_with_hints) {
    char value[32] = "";
    int there = 0;
    MUST(MPI_Info_get(hints, "chaos", 31, value, &there));
    CHECK(there && strcmp(value, "complete") == 0, "'%s'", value);
    MUST(MPI_Info_free(&hints));
}

static MPI_Comm other_half;
CARRIED(communicator_between_groups)
SET(communicator_between_groups) {
    MPI_Comm mine;
    int upper = trial_rank >= trial_size / 2;
    MUST(MPI_Comm_split(MPI_COMM_WORLD, upper, trial_rank, &mine));
    MUST(MPI_Intercomm_create(mine, 0, MPI_COMM_WORLD, upper ? 0 : trial_size / 2, 906, &other_half));
    MUST(MPI_Comm_free(&mine));
}
AFTER(communicator_between_groups) {
    int size = 0, one = 1, sum = 0;
    MPI_Comm_remote_size(other_half, &size);
    MUST(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, other_half));
    CHECK(sum == size, "%d of %d", sum, size);
    MUST(MPI_Comm_free(&other_half));
}

static char *send_buffer;
CARRIED(buffered_send)
SET(buffered_send) {
    int bytes = 4096 + MPI_BSEND_OVERHEAD, value = 70 + trial_rank;
    send_buffer = malloc((size_t)bytes);
    MUST(MPI_Buffer_attach(send_buffer, bytes));
    MUST(MPI_Bsend(&value, 1, MPI_INT, chaos_right(), 907, MPI_COMM_WORLD));
}
AFTER(buffered_send) {
    int value = 0, bytes = 0;
    void *buffer = NULL;
    MUST(MPI_Recv(&value, 1, MPI_INT, chaos_left(), 907, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(value == 70 + chaos_left(), "%d", value);
    MUST(MPI_Buffer_detach(&buffer, &bytes));
    CHECK(buffer == send_buffer && bytes == 4096 + MPI_BSEND_OVERHEAD, "%p, %d", buffer, bytes);
}

static MPI_Group some_ranks;
CARRIED(group_of_ranks)
SET(group_of_ranks) {
    MPI_Group all;
    int last = trial_size - 1;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MUST(MPI_Group_incl(all, 1, &last, &some_ranks));
    MPI_Group_free(&all);
}
AFTER(group_of_ranks) {
    int rank = -7;
    MPI_Group_rank(some_ranks, &rank);
    CHECK(rank == (trial_rank == trial_size - 1 ? 0 : MPI_UNDEFINED), "%d", rank);
    MPI_Group_free(&some_ranks);
}

static int error_seen;
static void on_error(MPI_Comm *communicator, int *code, ...) {
    (void)communicator;
    MPI_Error_class(*code, &error_seen);
}
static MPI_Errhandler own_handler;
static MPI_Comm handled;
CARRIED(error_handler_of_ones_own)
SET(error_handler_of_ones_own) {
    MUST(MPI_Comm_dup(MPI_COMM_WORLD, &handled));
    MUST(MPI_Comm_create_errhandler(on_error, &own_handler));
    MUST(MPI_Comm_set_errhandler(handled, own_handler));
}
AFTER(error_handler_of_ones_own) {
    MPI_Send(&trial_rank, 1, MPI_INT, trial_size + 5, 0, handled);
    CHECK(error_seen == MPI_ERR_RANK, "%d", error_seen);
    MUST(MPI_Errhandler_free(&own_handler));
    MUST(MPI_Comm_free(&handled));
}

static MPI_Win window;
static int *window_memory;
CARRIED(window_of_shared_memory)
SET(window_of_shared_memory) {
    MUST(MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window_memory, &window));
    *window_memory = -1;
    MUST(MPI_Win_fence(0, window));
}
AFTER(window_of_shared_memory) {
    int value = trial_rank, to = (trial_rank + 1) % trial_size;
    MUST(MPI_Win_fence(0, window));
    MUST(MPI_Put(&value, 1, MPI_INT, to, 0, 1, MPI_INT, window));
    MUST(MPI_Win_fence(0, window));
    CHECK(*window_memory == (trial_rank + trial_size - 1) % trial_size, "%d", *window_memory);
    MUST(MPI_Win_free(&window));
}
