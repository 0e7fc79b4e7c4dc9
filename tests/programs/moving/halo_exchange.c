/* A five-point stencil on a Cartesian grid with persistent halo exchange and a column type, checked against the same
 * computation done by rank 0 alone.
 * trial: ranks=2,4 */
#include "../moving.h"

#define N 48

static double at_start(int i, int j) { return (double)(trial_mix(i * 1000 + j) % 1000); }

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int dims[2] = {0, 0}, periods[2] = {1, 1}, at[2], up, down, left, right;
    MPI_Comm grid;
    MUST(MPI_Dims_create(trial_size, 2, dims));
    MUST(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid));
    MUST(MPI_Cart_coords(grid, trial_rank, 2, at));
    MUST(MPI_Cart_shift(grid, 0, 1, &up, &down));
    MUST(MPI_Cart_shift(grid, 1, 1, &left, &right));
    int rows = N / dims[0], columns = N / dims[1], wide = columns + 2;
    double *now = calloc((rows + 2) * wide, sizeof(double)), *next = calloc((rows + 2) * wide, sizeof(double));
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) now[(i + 1) * wide + j + 1] = at_start(at[0] * rows + i, at[1] * columns + j);
    MPI_Datatype column;
    MUST(MPI_Type_vector(rows, 1, wide, MPI_DOUBLE, &column));
    MUST(MPI_Type_commit(&column));
    MPI_Request requests[8];
    MUST(MPI_Send_init(now + wide + 1, columns, MPI_DOUBLE, up, 1, grid, &requests[0]));
    MUST(MPI_Send_init(now + rows * wide + 1, columns, MPI_DOUBLE, down, 2, grid, &requests[1]));
    MUST(MPI_Send_init(now + wide + 1, 1, column, left, 3, grid, &requests[2]));
    MUST(MPI_Send_init(now + wide + columns, 1, column, right, 4, grid, &requests[3]));
    MUST(MPI_Recv_init(now + (rows + 1) * wide + 1, columns, MPI_DOUBLE, down, 1, grid, &requests[4]));
    MUST(MPI_Recv_init(now + 1, columns, MPI_DOUBLE, up, 2, grid, &requests[5]));
    MUST(MPI_Recv_init(now + wide + columns + 1, 1, column, right, 3, grid, &requests[6]));
    MUST(MPI_Recv_init(now + wide, 1, column, left, 4, grid, &requests[7]));
    uint64_t round = 0;
    for (; moving_agree(round, grid); round++) {
        MUST(MPI_Startall(8, requests));
        MUST(MPI_Waitall(8, requests, MPI_STATUSES_IGNORE));
        for (int i = 1; i <= rows; i++)
            for (int j = 1; j <= columns; j++) {
                int k = i * wide + j;
                next[k] = 0.2 * (now[k] + now[k - 1] + now[k + 1] + now[k - wide] + now[k + wide]);
            }
        memcpy(now, next, (rows + 2) * wide * sizeof(double));
        if (round % 8 == 0) usleep(500);
    }
    /* The whole field, in blocks, to rank 0. */
    double *mine = malloc(rows * columns * sizeof(double)), *all = malloc(N * N * sizeof(double));
    for (int i = 0; i < rows; i++) memcpy(mine + i * columns, now + (i + 1) * wide + 1, columns * sizeof(double));
    MUST(MPI_Gather(mine, rows * columns, MPI_DOUBLE, all, rows * columns, MPI_DOUBLE, 0, grid));
    if (trial_rank == 0) {
        static double a[N][N], b[N][N];
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) a[i][j] = at_start(i, j);
        for (uint64_t step = 0; step < round; step++) {
            for (int i = 0; i < N; i++)
                for (int j = 0; j < N; j++)
                    b[i][j] = 0.2 * (a[i][j] + a[i][(j + N - 1) % N] + a[i][(j + 1) % N] + a[(i + N - 1) % N][j] + a[(i + 1) % N][j]);
            memcpy(a, b, sizeof a);
        }
        int wrong = 0;
        for (int rank = 0; rank < trial_size; rank++) {
            MUST(MPI_Cart_coords(grid, rank, 2, at));
            for (int i = 0; i < rows; i++)
                for (int j = 0; j < columns; j++)
                    wrong += all[(rank * rows + i) * columns + j] != a[at[0] * rows + i][at[1] * columns + j];
        }
        CHECK(wrong == 0, "%d of %d points differ after %d rounds", wrong, N * N, (int)round);
    }
    for (int i = 0; i < 8; i++) MUST(MPI_Request_free(&requests[i]));
    MUST(MPI_Type_free(&column));
    MUST(MPI_Comm_free(&grid));
    return trial_finish();
}
