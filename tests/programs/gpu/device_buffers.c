/* trial: ranks=3 flags=-ldl
 * Gives MPI addresses of a GPU's memory, as programs do that are written for an MPI which knows of GPUs: messages of each kind, collective operations,
 * derived datatypes, persistent requests, MPI_IN_PLACE. Everything that comes is compared with what the host computes, and so is what must not be touched.
 * In the middle requests are under way, for a checkpoint to fall there: `device_buffers hold`.
 */
#include "../common.h"
#include "../driver.h"
#include "../files.h"
#include <mpi-ext.h>
#include <string.h>

enum { N = 1000, PAD = 7 };

static int rank, size;

/* What a rank has at a place, small enough that sums are exact. */
static double value(int of, int index, int salt) { return (double)(trial_mix((uint64_t)of * 7919u + (uint64_t)index * 31u + (uint64_t)salt) % 1000u); }

static double *new_device(int count) {
    device_pointer made;
    DRIVER(cuMemAlloc(&made, (size_t)count * sizeof(double)));
    return (double *)(uintptr_t)made;
}

static void put(double *device, const double *host, int count) { DRIVER(cuMemcpyHtoD((device_pointer)(uintptr_t)device, host, (size_t)count * sizeof(double))); }
static void get(double *host, const double *device, int count) { DRIVER(cuMemcpyDtoH(host, (device_pointer)(uintptr_t)device, (size_t)count * sizeof(double))); }

/* Fills with what a rank has. */
static void fill(double *device, int count, int of, int salt) {
    double *host = malloc((size_t)count * sizeof(double));
    for (int i = 0; i < count; i++) host[i] = value(of, i, salt);
    put(device, host, count);
    free(host);
}

static void clear(double *device, int count) {
    double *host = malloc((size_t)count * sizeof(double));
    for (int i = 0; i < count; i++) host[i] = -1;
    put(device, host, count);
    free(host);
}

/* Whether `count` elements behind `at` are what a rank has from its element `from` on. */
static void expect(const char *what, const double *device, int at, int count, int of, int from, int salt) {
    double *host = malloc((size_t)count * sizeof(double));
    get(host, device + at, count);
    for (int i = 0; i < count; i++)
        CHECK(host[i] == value(of, from + i, salt), "%s: element %d is %g, not %g", what, at + i, host[i], value(of, from + i, salt));
    free(host);
}

static void expect_untouched(const char *what, const double *device, int at, int count) {
    double *host = malloc((size_t)count * sizeof(double));
    get(host, device + at, count);
    for (int i = 0; i < count; i++) CHECK(host[i] == -1, "%s: element %d was touched: %g", what, at + i, host[i]);
    free(host);
}

static void expect_sum(const char *what, const double *device, int at, int count, int ranks, int from, int salt) {
    double *host = malloc((size_t)count * sizeof(double));
    get(host, device + at, count);
    for (int i = 0; i < count; i++) {
        double sum = 0;
        for (int r = 0; r < ranks; r++) sum += value(r, from + i, salt);
        CHECK(host[i] == sum, "%s: element %d is %g, not %g", what, at + i, host[i], sum);
    }
    free(host);
}

static void messages(double *a, double *b) {
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Status status;
    fill(a, N, rank, 1);
    /* A message that is shorter than the receive. */
    clear(b, N + PAD);
    if (rank % 2 == 0) {
        MUST(MPI_Send(a, N - 10, MPI_DOUBLE, next, 1, MPI_COMM_WORLD));
        MUST(MPI_Recv(b, N, MPI_DOUBLE, before, 1, MPI_COMM_WORLD, &status));
    } else {
        MUST(MPI_Recv(b, N, MPI_DOUBLE, before, 1, MPI_COMM_WORLD, &status));
        MUST(MPI_Ssend(a, N - 10, MPI_DOUBLE, next, 1, MPI_COMM_WORLD));
    }
    int count;
    MUST(MPI_Get_count(&status, MPI_DOUBLE, &count));
    CHECK(count == N - 10, "%d elements", count);
    expect("Recv", b, 0, N - 10, before, 0, 1);
    expect_untouched("Recv", b, N - 10, 10 + PAD);

    clear(b, N + PAD);
    MUST(MPI_Sendrecv(a, N, MPI_DOUBLE, next, 2, b, N, MPI_DOUBLE, before, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    expect("Sendrecv", b, 0, N, before, 0, 1);
    expect_untouched("Sendrecv", b, N, PAD);
    MUST(MPI_Sendrecv_replace(b, N, MPI_DOUBLE, before, 3, next, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    expect("Sendrecv_replace", b, 0, N, rank, 0, 1);

    /* From a device to a host, and back. */
    double *host = malloc(N * sizeof(double));
    MUST(MPI_Sendrecv(a, N, MPI_DOUBLE, next, 4, host, N, MPI_DOUBLE, before, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < N; i++) CHECK(host[i] == value(before, i, 1), "to the host: %d", i);
    clear(b, N);
    MUST(MPI_Sendrecv(host, N, MPI_DOUBLE, before, 5, b, N, MPI_DOUBLE, next, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    expect("from the host", b, 0, N, rank, 0, 1);
    free(host);

    MPI_Message message;
    MPI_Request request;
    clear(b, N);
    MUST(MPI_Isend(a, N, MPI_DOUBLE, next, 6, MPI_COMM_WORLD, &request));
    MUST(MPI_Mprobe(before, 6, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
    MUST(MPI_Mrecv(b, N, MPI_DOUBLE, &message, MPI_STATUS_IGNORE));
    MUST(MPI_Wait(&request, MPI_STATUS_IGNORE));
    expect("Mrecv", b, 0, N, before, 0, 1);
}

static void datatypes(double *a, double *b) {
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    /* A column of a field of 10 columns; the rest stays. */
    MPI_Datatype column, resized;
    MUST(MPI_Type_vector(N / 10, 1, 10, MPI_DOUBLE, &column));
    MUST(MPI_Type_create_resized(column, 0, sizeof(double), &resized));
    MUST(MPI_Type_commit(&resized));
    fill(a, N, rank, 2);
    clear(b, N);
    MPI_Request requests[2];
    MUST(MPI_Irecv(b + 3, 2, resized, before, 7, MPI_COMM_WORLD, &requests[0]));
    MUST(MPI_Isend(a + 5, 2, resized, next, 7, MPI_COMM_WORLD, &requests[1]));
    /* Beside the columns the program works on. */
    double mark = 42;
    put(b + 15, &mark, 1);
    MUST(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    double *host = malloc(N * sizeof(double));
    get(host, b, N);
    for (int i = 0; i < N; i++) {
        double right = i % 10 == 3 ? value(before, i + 2, 2) : i % 10 == 4 ? value(before, i + 2, 2) : -1;
        if (i == 15) right = 42;
        CHECK(host[i] == right, "column: element %d is %g, not %g", i, host[i], right);
    }
    mark = 43;
    clear(b, N);
    MUST(MPI_Irecv(b + 3, 1, resized, before, 8, MPI_COMM_WORLD, &requests[0]));
    put(b + 4, &mark, 1);
    MUST(MPI_Isend(a + 5, 1, resized, next, 8, MPI_COMM_WORLD, &requests[1]));
    MUST(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    get(host, b, N);
    CHECK(host[4] == 43, "what lies beside a column was written to: %g", host[4]);
    CHECK(host[3] == value(before, 5, 2), "column: %g", host[3]);
    free(host);
    MUST(MPI_Type_free(&column));
    MUST(MPI_Type_free(&resized));

    /* Packed on the device. */
    int position = 0;
    clear(b, N);
    MUST(MPI_Pack(a, 10, MPI_DOUBLE, b, 800, &position, MPI_COMM_WORLD));
    MUST(MPI_Pack(a + 20, 10, MPI_DOUBLE, b, 800, &position, MPI_COMM_WORLD));
    position = 0;
    MUST(MPI_Unpack(b, 800, &position, b + 200, 20, MPI_DOUBLE, MPI_COMM_WORLD));
    expect("Unpack", b, 200, 10, rank, 0, 2);
    expect("Unpack", b, 210, 10, rank, 20, 2);
}

static void collectives(double *a, double *b) {
    int part = N / size;
    fill(a, N, rank, 3);
    clear(b, N);
    if (rank == 1) fill(b, N, rank, 4);
    MUST(MPI_Bcast(b, N, MPI_DOUBLE, 1, MPI_COMM_WORLD));
    expect("Bcast", b, 0, N, 1, 0, 4);
    clear(b, N);
    MUST(MPI_Allreduce(a, b, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    expect_sum("Allreduce", b, 0, N, size, 0, 3);
    fill(b, N, rank, 5);
    MUST(MPI_Allreduce(MPI_IN_PLACE, b, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    expect_sum("Allreduce in place", b, 0, N, size, 0, 5);
    clear(b, N);
    MUST(MPI_Reduce(a, b, N, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD));
    if (rank == 0) expect_sum("Reduce", b, 0, N, size, 0, 3);
    else expect_untouched("Reduce", b, 0, N);
    clear(b, N);
    MUST(MPI_Scan(a, b, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    expect_sum("Scan", b, 0, N, rank + 1, 0, 3);
    clear(b, N);
    MUST(MPI_Exscan(a, b, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    if (rank > 0) expect_sum("Exscan", b, 0, N, rank, 0, 3);
    clear(b, N);
    MUST(MPI_Reduce_scatter_block(a, b, part, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    expect_sum("Reduce_scatter_block", b, 0, part, size, rank * part, 3);
    expect_untouched("Reduce_scatter_block", b, part, N - part);

    clear(b, N);
    MUST(MPI_Allgather(a, part, MPI_DOUBLE, b, part, MPI_DOUBLE, MPI_COMM_WORLD));
    for (int r = 0; r < size; r++) expect("Allgather", b, r * part, part, r, 0, 3);
    clear(b, N);
    fill(b + rank * part, part, rank, 6);
    MUST(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, part, MPI_DOUBLE, MPI_COMM_WORLD));
    for (int r = 0; r < size; r++) expect("Allgather in place", b, r * part, part, r, 0, 6);
    clear(b, N);
    MUST(MPI_Alltoall(a, part, MPI_DOUBLE, b, part, MPI_DOUBLE, MPI_COMM_WORLD));
    for (int r = 0; r < size; r++) expect("Alltoall", b, r * part, part, r, rank * part, 3);
    clear(b, N);
    MUST(MPI_Gather(a, part, MPI_DOUBLE, b, part, MPI_DOUBLE, 2, MPI_COMM_WORLD));
    if (rank == 2)
        for (int r = 0; r < size; r++) expect("Gather", b, r * part, part, r, 0, 3);
    else expect_untouched("Gather", b, 0, N);
    clear(b, N);
    MUST(MPI_Scatter(a, part, MPI_DOUBLE, b, part, MPI_DOUBLE, 1, MPI_COMM_WORLD));
    expect("Scatter", b, 0, part, 1, rank * part, 3);
    expect_untouched("Scatter", b, part, N - part);

    int counts[16], places[16], own[16], zeros[16];
    for (int r = 0; r < size; r++) {
        counts[r] = 10 + r;
        places[r] = r * (part / 2) + 3;
        own[r] = 10 + rank;
        zeros[r] = 4 * r;
    }
    clear(b, N);
    MUST(MPI_Allgatherv(a, counts[rank], MPI_DOUBLE, b, counts, places, MPI_DOUBLE, MPI_COMM_WORLD));
    int end = 0;
    for (int r = 0; r < size; r++) {
        expect_untouched("Allgatherv", b, end, places[r] - end);
        expect("Allgatherv", b, places[r], counts[r], r, 0, 3);
        end = places[r] + counts[r];
    }
    clear(b, N);
    MUST(MPI_Alltoallv(a, counts, zeros, MPI_DOUBLE, b, own, places, MPI_DOUBLE, MPI_COMM_WORLD));
    for (int r = 0; r < size; r++) expect("Alltoallv", b, places[r], own[r], r, 4 * rank, 3);
    MPI_Datatype types[16];
    int bytes[16];
    for (int r = 0; r < size; r++) {
        types[r] = MPI_DOUBLE;
        places[r] = r * 800;
        bytes[r] = r * 80;
        counts[r] = 5;
    }
    clear(b, N);
    MUST(MPI_Alltoallw(a, counts, bytes, types, b, counts, places, types, MPI_COMM_WORLD));
    for (int r = 0; r < size; r++) expect("Alltoallw", b, r * 100, 5, r, rank * 10, 3);

    MPI_Request request;
    clear(b, N);
    MUST(MPI_Iallreduce(a, b, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request));
    int over = 0;
    while (!over) MUST(MPI_Test(&request, &over, MPI_STATUS_IGNORE));
    expect_sum("Iallreduce", b, 0, N, size, 0, 3);

    /* Neighbours in a ring. */
    MPI_Comm ring;
    int periodic = 1, next = (rank + 1) % size, before = (rank + size - 1) % size;
    MUST(MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring));
    clear(b, N);
    MUST(MPI_Neighbor_alltoall(a, 50, MPI_DOUBLE, b, 50, MPI_DOUBLE, ring));
    expect("Neighbor_alltoall", b, 0, 50, before, 50, 3);
    expect("Neighbor_alltoall", b, 50, 50, next, 0, 3);
    expect_untouched("Neighbor_alltoall", b, 100, N - 100);
    MUST(MPI_Comm_free(&ring));

    /* A persistent sum, of what the device has when it is started. */
    MUST(MPIX_Allreduce_init(a, b, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    for (int round = 0; round < 2; round++) {
        fill(a, N, rank, 7 + round);
        clear(b, N);
        MUST(MPI_Start(&request));
        MUST(MPI_Wait(&request, MPI_STATUS_IGNORE));
        expect_sum("a persistent sum", b, 0, N, size, 0, 7 + round);
    }
    MUST(MPI_Request_free(&request));
    MUST(MPI_Reduce_local(a, b, N, MPI_DOUBLE, MPI_MAX));
}

/* To a file and back. */
static void files(double *a, double *b) {
    char path[4096];
    MPI_File file;
    snprintf(path, sizeof path, "%s/device_buffers.bytes", getenv("TRIAL_DIR") ? getenv("TRIAL_DIR") : ".");
    fill(a, N, rank, 9);
    clear(b, N);
    MUST(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    MUST(MPI_File_write_at_all(file, rank * (MPI_Offset)(N * sizeof(double)), a, N, MPI_DOUBLE, MPI_STATUS_IGNORE));
    files_written(file, MPI_COMM_WORLD);
    MUST(MPI_File_read_at(file, rank * (MPI_Offset)(N * sizeof(double)), b, N - 5, MPI_DOUBLE, MPI_STATUS_IGNORE));
    expect("a file", b, 0, N - 5, rank, 0, 9);
    expect_untouched("a file", b, N - 5, 5);
    MPI_Request request;
    int code = MPI_File_iwrite_at(file, 0, a, 1, MPI_DOUBLE, &request);
    CHECK(code != MPI_SUCCESS, "a nonblocking write from a GPU's memory");
    MUST(MPI_File_close(&file));
}

/* A send that nobody waits for keeps what it sends, whatever comes to be in the same memory. */
static void freed_sends(double *a, double *b, double *c, int next, int before) {
    MPI_Request send;
    fill(a, N, rank, 30);
    clear(b, N + PAD), clear(c, N + PAD);
    MUST(MPI_Isend(a, N, MPI_DOUBLE, next, 30, MPI_COMM_WORLD, &send));
    MUST(MPI_Request_free(&send));
    CHECK(send == MPI_REQUEST_NULL, "%s", "a freed request");
    clear(a, N);
    for (int i = 0; i < 8; i++) MUST(MPI_Sendrecv(a, N, MPI_DOUBLE, next, 31, c, N, MPI_DOUBLE, before, 31, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    MUST(MPI_Recv(b, N, MPI_DOUBLE, before, 30, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    expect("a send that was freed", b, 0, N, before, 0, 30);
    expect_untouched("beside it", c, 0, N);
}

/* A receive that nobody waits for would not reach the device: it is refused, and goes on. */
static void freed_receives(double *a, double *b, int next, int before) {
    MPI_Request receive;
    fill(a, N, rank, 32);
    clear(b, N);
    MUST(MPI_Irecv(b, N, MPI_DOUBLE, before, 32, MPI_COMM_WORLD, &receive));
    CHECK(MPI_Request_free(&receive) != MPI_SUCCESS && receive != MPI_REQUEST_NULL, "%s", "a receive that was freed");
    MUST(MPI_Send(a, N, MPI_DOUBLE, next, 32, MPI_COMM_WORLD));
    MUST(MPI_Wait(&receive, MPI_STATUS_IGNORE));
    expect("a receive that could not be freed", b, 0, N, before, 0, 32);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int hold = argc > 1 && strcmp(argv[1], "hold") == 0;
    rank = trial_rank;
    size = trial_size;
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    /* Frequent calls before there is a GPU. */
    for (int i = 0; i < 10; i++) {
        int sent = rank, got = -1;
        MUST(MPI_Sendrecv(&sent, 1, MPI_INT, next, 0, &got, 1, MPI_INT, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        MUST(MPI_Bcast(&sent, 1, MPI_INT, 0, MPI_COMM_WORLD));
        CHECK(got == before && sent == 0, "%d %d", got, sent);
    }
    driver_open();
    DRIVER(cuInit(0));
    int devices, device;
    DRIVER(cuDeviceGetCount(&devices));
    DRIVER(cuDeviceGet(&device, rank % devices));
    context used;
    DRIVER(cuDevicePrimaryCtxRetain(&used, device));
    DRIVER(cuCtxSetCurrent(used));
    double *a = new_device(N + PAD), *b = new_device(N + PAD), *c = new_device(N + PAD), *d = new_device(N + PAD), *e = new_device(N + PAD);
    messages(a, b);
    datatypes(a, b);
    collectives(a, b);
    files(a, b);
    freed_sends(a, b, c, next, before);

    /* What a checkpoint finds: a receive whose message comes later, one whose message is there, a collective operation under way, and persistent requests. */
    MPI_Request late, there, sum, starts[2];
    fill(a, N, rank, 10);
    clear(b, N), clear(c, N), clear(d, N), clear(e, N);
    MUST(MPI_Irecv(b, N, MPI_DOUBLE, before, 20, MPI_COMM_WORLD, &late));
    MUST(MPI_Send(a, 100, MPI_DOUBLE, next, 21, MPI_COMM_WORLD));
    MUST(MPI_Iallreduce(a, c, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &sum));
    double *p = new_device(N);
    fill(p, N, rank, 11);
    MUST(MPI_Send_init(p, N, MPI_DOUBLE, next, 22, MPI_COMM_WORLD, &starts[0]));
    MUST(MPI_Recv_init(d, N, MPI_DOUBLE, before, 22, MPI_COMM_WORLD, &starts[1]));
    for (int round = 0; round < 2; round++) {
        fill(p, N, rank, 12 + round);
        MUST(MPI_Startall(2, starts));
        MUST(MPI_Waitall(2, starts, MPI_STATUSES_IGNORE));
        expect("persistent", d, 0, N, before, 0, 12 + round);
    }
    if (hold) trial_hold();
    MUST(MPI_Irecv(e, N, MPI_DOUBLE, before, 21, MPI_COMM_WORLD, &there));
    MUST(MPI_Send(a, N, MPI_DOUBLE, next, 20, MPI_COMM_WORLD));
    MUST(MPI_Wait(&late, MPI_STATUS_IGNORE));
    expect("a receive that was under way", b, 0, N, before, 0, 10);
    MUST(MPI_Wait(&sum, MPI_STATUS_IGNORE));
    expect_sum("a sum that was under way", c, 0, N, size, 0, 10);
    MUST(MPI_Wait(&there, MPI_STATUS_IGNORE));
    expect("a message that was there", e, 0, 100, before, 0, 10);
    expect_untouched("a message that was there", e, 100, N - 100);
    for (int round = 2; round < 4; round++) {
        fill(p, N, rank, 12 + round);
        MUST(MPI_Startall(2, starts));
        MUST(MPI_Waitall(2, starts, MPI_STATUSES_IGNORE));
        expect("persistent, later", d, 0, N, before, 0, 12 + round);
    }
    MUST(MPI_Request_free(&starts[0]));
    MUST(MPI_Request_free(&starts[1]));
    messages(a, b);
    collectives(a, b);

    /* What cannot be served is refused. */
    MPI_Win window;
    MUST(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    int code = MPI_Win_create(a, 800, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    CHECK(code != MPI_SUCCESS, "a window over a GPU's memory");
    freed_receives(a, b, next, before);
    return trial_end();
}
