/* Requests of nonblocking collective operations that get a Fortran number while they are under way, among others that do not: a
 * number leads to its request until that is over, and to nothing after; where it is the handle itself (MPICH's), the number is nobody's then.
 * trial: ranks=2 */
#include "../common.h"

enum { MANY = 4, ROUNDS = 50 };

static MPI_Request begin(int *in, int *out, int i) {
    MPI_Request request;
    in[i] = trial_rank + i;
    MUST(MPI_Iallreduce(&in[i], &out[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request));
    return request;
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    for (int round = 0; round < ROUNDS; round++) {
        int in[MANY], out[MANY];
        MPI_Fint numbers[MANY];
        MPI_Request requests[MANY];
        for (int i = 0; i < MANY; i++) requests[i] = begin(in, out, i);
        for (int i = 0; i < MANY; i += 2) numbers[i] = MPI_Request_c2f(requests[i]);
        if (round == ROUNDS - 1) trial_hold();
        for (int i = 0; i < MANY; i++) {
            MPI_Request request = i % 2 == 0 ? MPI_Request_f2c(numbers[i]) : requests[i];
            CHECK(request == requests[i], "round %d: request %d is another", round, i);
            MUST(MPI_Wait(&request, MPI_STATUS_IGNORE));
            CHECK(request == MPI_REQUEST_NULL, "round %d: request %d is left", round, i);
            int expected = 2 * i + 1;
            CHECK(out[i] == expected, "round %d: sum %d is %d", round, i, out[i]);
            /* MPICH's f2c is a cast, by the program's own mpi.h. */
            int is_cast = sizeof(MPI_Request) == sizeof(MPI_Fint);
            if (i % 2 == 0 && !is_cast) CHECK(!MPI_Request_f2c(numbers[i]), "round %d: number of request %d", round, i);
            if (i % 2 == 0 && is_cast) CHECK(MPI_Request_c2f(MPI_Request_f2c(numbers[i])) == numbers[i], "round %d: number of request %d", round, i);
        }
    }
    return trial_finish();
}
