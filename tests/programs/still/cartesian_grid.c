/* Coordinates, shifts and sub-grids of a Cartesian communicator are the same afterwards.
 * trial: ranks=4,6 */
#include "../common.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int dims[2] = {0, 2}, periods[2] = {1, 0}, coordinates[2], rows[2] = {0, 1};
    MPI_Comm grid, row;
    MUST(MPI_Dims_create(trial_size, 2, dims));
    CHECK(dims[0] == trial_size / 2 && dims[1] == 2, "dims %d x %d", dims[0], dims[1]);
    MUST(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &grid));
    MUST(MPI_Cart_sub(grid, rows, &row));
    int before[4], rank = -1;
    MUST(MPI_Comm_rank(grid, &rank));
    MUST(MPI_Cart_coords(grid, rank, 2, coordinates));
    MUST(MPI_Cart_shift(grid, 0, 1, &before[0], &before[1]));
    MUST(MPI_Cart_shift(grid, 1, 1, &before[2], &before[3]));
    trial_hold();
    int kind = -1, count = 0, after[4], got_dims[2], got_periods[2], got[2], now = -1;
    MUST(MPI_Topo_test(grid, &kind));
    MUST(MPI_Cartdim_get(grid, &count));
    CHECK(kind == MPI_CART && count == 2, "topology %d of %d dimensions", kind, count);
    MUST(MPI_Cart_get(grid, 2, got_dims, got_periods, got));
    for (int i = 0; i < 2; i++)
        CHECK(got_dims[i] == dims[i] && got_periods[i] == periods[i] && got[i] == coordinates[i], "dimension %d", i);
    MUST(MPI_Comm_rank(grid, &now));
    MUST(MPI_Cart_coords(grid, now, 2, got));
    CHECK(now == rank && got[0] == coordinates[0] && got[1] == coordinates[1], "at %d,%d", got[0], got[1]);
    CHECK(got[0] == rank / 2 && got[1] == rank % 2, "row-major order: at %d,%d", got[0], got[1]);
    MUST(MPI_Cart_shift(grid, 0, 1, &after[0], &after[1]));
    MUST(MPI_Cart_shift(grid, 1, 1, &after[2], &after[3]));
    for (int i = 0; i < 4; i++) CHECK(after[i] == before[i], "shift %d: %d, was %d", i, after[i], before[i]);
    CHECK(after[got[1] == 0 ? 2 : 3] == MPI_PROC_NULL, "the open side has the neighbour %d", after[got[1] == 0 ? 2 : 3]);
    MUST(MPI_Cart_rank(grid, coordinates, &now));
    CHECK(now == rank, "rank %d at our coordinates", now);

    /* A value goes round the closed dimension. */
    int value = rank;
    for (int i = 0; i < dims[0]; i++)
        MUST(MPI_Sendrecv_replace(&value, 1, MPI_INT, after[1], 1, after[0], 1, grid, MPI_STATUS_IGNORE));
    CHECK(value == rank, "came back as %d", value);
    /* A column of the sub-grid communicates by itself. */
    int size = 0, sum = 0, column = -1;
    MUST(MPI_Comm_size(row, &size));
    MUST(MPI_Cart_coords(row, rank % 2, 1, &column));
    MUST(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, row));
    CHECK(size == 2 && column == coordinates[1] && sum == 2 * (rank - rank % 2) + 1, "row of %d: sum %d", size, sum);
    int in[4] = {-7, -7, -7, -7}, out[4] = {10 * rank, 10 * rank + 1, 10 * rank + 2, 10 * rank + 3};
    MUST(MPI_Neighbor_allgather(out, 1, MPI_INT, in, 1, MPI_INT, grid));
    for (int i = 0; i < 4; i++)
        CHECK(in[i] == (after[i] == MPI_PROC_NULL ? -7 : 10 * after[i]), "from neighbour %d: %d", i, in[i]);
    MPI_Comm copy;
    MUST(MPI_Comm_dup(grid, &copy));
    MUST(MPI_Topo_test(copy, &kind));
    CHECK(kind == MPI_CART, "the duplicate's topology is %d", kind);
    MUST(MPI_Comm_free(&copy));
    MUST(MPI_Comm_free(&row));
    MUST(MPI_Comm_free(&grid));
    return trial_finish();
}
