/* Persistent collectives as a program of Open MPI 5 names them. Open MPI 4 has not these names, so that it is linked without them.
 * trial: ranks=2,4 */
#define NAMES_OF_OPEN_MPI_5
#include "../still/persistent_collectives.c"
