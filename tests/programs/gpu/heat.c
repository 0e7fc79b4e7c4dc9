/* trial: ranks=4 flags=-ldl
 * Heat on a plate, on GPUs: `heat ROWS COLUMNS STEPS [MIB]`. Ranks have unequal numbers of rows, and share the devices that there are.
 * Each keeps two fields whose addresses lie in device memory, where a kernel follows and swaps them. One stream computes the
 * rows at the edges and copies them to pinned memory, from where MPI takes them to the neighbours; another computes the rest meanwhile.
 * The last steps are taken when the rank is let go. Rank 0 prints a digest of the field: the same for every number of ranks, on every run. With MIB, each rank has memory besides that is
 * written to once; the digest covers it too, and is the same on every run with as many ranks.
 */
#include "../common.h"
#include "../driver.h"

/* Steps that are computed when the rank has been let go. */
enum { LAST = 10 };

static const char KERNELS[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    /* The two fields, columns, first row and one behind the last, share of the neighbours. A block computes a row. */
    ".visible .entry heat_rows(.param .u64 heat_rows_0, .param .u64 heat_rows_1, .param .u64 heat_rows_2,\n"
    "    .param .u64 heat_rows_3, .param .f64 heat_rows_4)\n{\n"
    ".reg .pred %p<3>;\n.reg .b32 %r<4>;\n.reg .b64 %rd<19>;\n.reg .f64 %fd<9>;\n"
    "ld.param.u64 %rd1, [heat_rows_0];\nld.param.u64 %rd2, [heat_rows_1];\nld.param.u64 %rd3, [heat_rows_2];\nld.param.f64 %fd1, [heat_rows_4];\n"
    "ld.u64 %rd4, [%rd1];\nld.u64 %rd5, [%rd1+8];\n"
    /* The row's first point, this thread's column, the number of threads, the last column, a row's bytes. */
    "mov.u32 %r1, %ctaid.x;\ncvt.u64.u32 %rd6, %r1;\nadd.u64 %rd6, %rd6, %rd3;\nmul.lo.u64 %rd7, %rd6, %rd2;\n"
    "mov.u32 %r2, %tid.x;\ncvt.u64.u32 %rd8, %r2;\nmov.u32 %r3, %ntid.x;\ncvt.u64.u32 %rd9, %r3;\n"
    "sub.u64 %rd10, %rd2, 1;\nshl.b64 %rd11, %rd2, 3;\n"
    "POINT:\nsetp.ge.u64 %p1, %rd8, %rd2;\n@%p1 bra DONE;\n"
    "add.u64 %rd12, %rd7, %rd8;\nshl.b64 %rd12, %rd12, 3;\nadd.u64 %rd13, %rd4, %rd12;\nld.f64 %fd2, [%rd13];\n"
    "sub.u64 %rd14, %rd13, %rd11;\nld.f64 %fd3, [%rd14];\nadd.u64 %rd15, %rd13, %rd11;\nld.f64 %fd4, [%rd15];\n"
    /* At an edge the point is its own neighbour. */
    "setp.eq.u64 %p2, %rd8, 0;\nselp.b64 %rd16, 0, 8, %p2;\nsub.u64 %rd16, %rd13, %rd16;\nld.f64 %fd5, [%rd16];\n"
    "setp.eq.u64 %p2, %rd8, %rd10;\nselp.b64 %rd17, 0, 8, %p2;\nadd.u64 %rd17, %rd13, %rd17;\nld.f64 %fd6, [%rd17];\n"
    "add.rn.f64 %fd7, %fd3, %fd4;\nadd.rn.f64 %fd7, %fd7, %fd5;\nadd.rn.f64 %fd7, %fd7, %fd6;\n"
    "mul.rn.f64 %fd8, %fd2, 0d4010000000000000;\nsub.rn.f64 %fd8, %fd7, %fd8;\nmul.rn.f64 %fd8, %fd8, %fd1;\nadd.rn.f64 %fd8, %fd2, %fd8;\n"
    "add.u64 %rd18, %rd5, %rd12;\nst.f64 [%rd18], %fd8;\nadd.u64 %rd8, %rd8, %rd9;\nbra POINT;\nDONE:\nret;\n}\n"
    ".visible .entry heat_swap(.param .u64 heat_swap_0)\n{\n.reg .b64 %rd<4>;\nld.param.u64 %rd1, [heat_swap_0];\n"
    "ld.u64 %rd2, [%rd1];\nld.u64 %rd3, [%rd1+8];\nst.u64 [%rd1], %rd3;\nst.u64 [%rd1+8], %rd2;\nret;\n}\n";

/* Rows above and below, so that ranks have unequal numbers of them: in proportion to 2, 3, 4, ... */
static long first_row(long rows, int rank, int size) {
    long parts = 0, before = 0;
    for (int i = 0; i < size; i++) {
        if (i < rank) before += i + 2;
        parts += i + 2;
    }
    return rows * before / parts;
}

static double start_value(long row, long column) {
    return (double)(trial_mix((uint64_t)row * 1000003u + (uint64_t)column) % 1000u) * 0.1;
}

struct plate {
    long columns, rows;
    device_pointer table;
    function compute, swap;
};

static void launch_rows(struct plate *plate, uint64_t from, uint64_t to, stream in) {
    uint64_t columns = (uint64_t)plate->columns;
    double share = 0.1;
    void *parameters[] = {&plate->table, &columns, &from, &to, &share};
    if (from < to) DRIVER(cuLaunchKernel(plate->compute, (unsigned)(to - from), 1, 1, 128, 1, 1, 0, in, parameters, NULL));
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    long all = argc > 1 ? atol(argv[1]) : 200, columns = argc > 2 ? atol(argv[2]) : 150, steps = argc > 3 ? atol(argv[3]) : 100;
    long first = first_row(all, trial_rank, trial_size), rows = first_row(all, trial_rank + 1, trial_size) - first;
    if (rows < 3) {
        fprintf(stderr, "rank %d has %ld rows, and needs 3\n", trial_rank, rows);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }

    driver_open();
    DRIVER(cuInit(0));
    int devices, device;
    DRIVER(cuDeviceGetCount(&devices));
    DRIVER(cuDeviceGet(&device, trial_rank % devices));
    context used;
    DRIVER(cuDevicePrimaryCtxRetain(&used, device));
    DRIVER(cuCtxSetCurrent(used));

    struct plate plate = {.columns = columns, .rows = rows};
    module kernels;
    DRIVER(cuModuleLoadData(&kernels, KERNELS));
    DRIVER(cuModuleGetFunction(&plate.compute, kernels, "heat_rows"));
    DRIVER(cuModuleGetFunction(&plate.swap, kernels, "heat_swap"));
    stream edges, inside;
    DRIVER(cuStreamCreate(&edges, 1));
    DRIVER(cuStreamCreate(&inside, 1));
    event sent, computed, swapped;
    DRIVER(cuEventCreate(&sent, 2));
    DRIVER(cuEventCreate(&computed, 0));
    DRIVER(cuEventCreate(&swapped, 0));

    /* A row of a neighbour above and below. */
    size_t row = (size_t)columns * sizeof(double), field = row * (size_t)(rows + 2);
    device_pointer fields[2];
    double *host;
    DRIVER(cuMemHostAlloc((void **)&host, field, 0));
    for (long r = 0; r < rows + 2; r++)
        for (long c = 0; c < columns; c++) host[r * columns + c] = start_value(first + r - 1, c);
    for (int i = 0; i < 2; i++) {
        DRIVER(cuMemAlloc(&fields[i], field));
        DRIVER(cuMemcpyHtoDAsync(fields[i], host, field, edges));
    }
    DRIVER(cuMemAlloc(&plate.table, sizeof fields));
    DRIVER(cuMemcpyHtoD(plate.table, fields, sizeof fields));
    double *halo; /* Sent up and down, received from above and below. */
    DRIVER(cuMemHostAlloc((void **)&halo, 4 * row, 0));
    DRIVER(cuStreamSynchronize(edges));

    /* Memory that nobody writes to again, as many MiB as are asked for. It goes into the digest as well. */
    size_t still = argc > 4 ? (size_t)atol(argv[4]) << 20 : 0;
    device_pointer idle = 0;
    uint64_t *pattern = malloc(still + 8);
    for (size_t i = 0; i < still / 8; i++) pattern[i] = trial_mix(i * 31u + (uint64_t)trial_rank);
    if (still > 0) {
        DRIVER(cuMemAlloc(&idle, still));
        DRIVER(cuMemcpyHtoD(idle, pattern, still));
        memset(pattern, 0, still);
    }

    int above = trial_rank > 0 ? trial_rank - 1 : MPI_PROC_NULL, below = trial_rank + 1 < trial_size ? trial_rank + 1 : MPI_PROC_NULL;
    for (long step = 0; step < steps; step++) {
        /* Whoever comes here before it is let go still has memory on the device, and has to compute with it: a checkpoint always has something to
         * stage, and what is wrong after it is wrong in the digest. */
        if (step == steps - LAST) {
            trial_mark("waits");
            trial_wait();
        }
        device_pointer to = fields[(step + 1) % 2];
        uint64_t last = (uint64_t)rows;
        launch_rows(&plate, 1, 2, edges);
        launch_rows(&plate, last, last + 1, edges);
        launch_rows(&plate, 2, last, inside);
        DRIVER(cuEventRecord(computed, inside));
        DRIVER(cuMemcpyDtoHAsync(halo, to + row, row, edges));
        DRIVER(cuMemcpyDtoHAsync(halo + columns, to + row * last, row, edges));
        DRIVER(cuEventRecord(sent, edges));
        DRIVER(cuEventSynchronize(sent));
        MUST(MPI_Sendrecv(halo, (int)columns, MPI_DOUBLE, above, 1, halo + 3 * columns, (int)columns, MPI_DOUBLE, below, 1,
                          MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        MUST(MPI_Sendrecv(halo + columns, (int)columns, MPI_DOUBLE, below, 2, halo + 2 * columns, (int)columns, MPI_DOUBLE, above, 2,
                          MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        if (above != MPI_PROC_NULL) DRIVER(cuMemcpyHtoDAsync(to, halo + 2 * columns, row, edges));
        if (below != MPI_PROC_NULL) DRIVER(cuMemcpyHtoDAsync(to + row * (last + 1), halo + 3 * columns, row, edges));
        DRIVER(cuStreamWaitEvent(edges, computed, 0));
        void *parameters[] = {&plate.table};
        DRIVER(cuLaunchKernel(plate.swap, 1, 1, 1, 1, 1, 1, 0, edges, parameters, NULL));
        DRIVER(cuEventRecord(swapped, edges));
        DRIVER(cuStreamWaitEvent(inside, swapped, 0));
        if (step == 5) trial_ready();
    }

    DRIVER(cuCtxSynchronize());
    device_pointer now[2];
    DRIVER(cuMemcpyDtoH(now, plate.table, sizeof now));
    CHECK(now[0] == fields[steps % 2] && now[1] == fields[(steps + 1) % 2], "the table leads to %llx", (unsigned long long)now[0]);
    float milliseconds = -1;
    DRIVER(cuEventElapsedTime(&milliseconds, computed, swapped));
    CHECK(steps == 0 || milliseconds >= 0, "%f ms from an event to a later one", (double)milliseconds);
    DRIVER(cuMemcpyDtoH(host, now[0], field));

    /* The digest goes from rank to rank, row by row. */
    uint64_t digest = 14695981039346656037u;
    if (trial_rank > 0) MUST(MPI_Recv(&digest, 1, MPI_UINT64_T, trial_rank - 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    const uint64_t *words = (const uint64_t *)(host + columns);
    for (long i = 0; i < rows * columns; i++) digest = (digest ^ words[i]) * 1099511628211u;
    if (still > 0) DRIVER(cuMemcpyDtoH(pattern, idle, still));
    for (size_t i = 0; i < still / 8; i++) digest = (digest ^ pattern[i]) * 1099511628211u;
    MUST(MPI_Send(&digest, 1, MPI_UINT64_T, (trial_rank + 1) % trial_size, trial_rank + 1 < trial_size ? 3 : 4, MPI_COMM_WORLD));
    if (trial_rank == 0) {
        MUST(MPI_Recv(&digest, 1, MPI_UINT64_T, trial_size - 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        printf("digest %016llx\n", (unsigned long long)digest);
    }

    DRIVER(cuEventDestroy(sent));
    DRIVER(cuEventDestroy(computed));
    DRIVER(cuEventDestroy(swapped));
    DRIVER(cuStreamDestroy(edges));
    DRIVER(cuStreamDestroy(inside));
    DRIVER(cuMemFreeHost(halo));
    DRIVER(cuMemFreeHost(host));
    for (int i = 0; i < 2; i++) DRIVER(cuMemFree(fields[i]));
    if (still > 0) DRIVER(cuMemFree(idle));
    free(pattern);
    DRIVER(cuMemFree(plate.table));
    DRIVER(cuModuleUnload(kernels));
    DRIVER(cuDevicePrimaryCtxRelease(device));
    return trial_end();
}
