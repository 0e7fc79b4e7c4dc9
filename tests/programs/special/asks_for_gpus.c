/* Asks MPI whether it takes a GPU's memory.
 * trial: ranks=1 */
#include <mpi.h>
#include <stdio.h>

int MPIX_Query_cuda_support(void);

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    printf("it says %d\n", MPIX_Query_cuda_support());
    return MPI_Finalize();
}
