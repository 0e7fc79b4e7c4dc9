/* Ends the given number of milliseconds after it is ready.
 * trial: ranks=8 */
#include "../common.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    trial_ready();
    usleep(argc > 1 ? 1000 * atoi(argv[1]) : 0);
    return trial_end();
}
