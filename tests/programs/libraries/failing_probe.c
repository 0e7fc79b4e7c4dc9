/* In the place of the MPI library, which comes behind it: MPI_Iprobe fails for as long as the file that FAILING_PROBE names is there. */
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

int MPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status) {
    const char *file = getenv("FAILING_PROBE");
    if (file && access(file, F_OK) == 0) return MPI_ERR_OTHER;
    return PMPI_Iprobe(source, tag, comm, flag, status);
}
