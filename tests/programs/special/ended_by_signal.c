/* Ends by the signal that ENDED_BY gives, as a program does that aborts or crashes.
 * trial: ranks=1 flags=-rdynamic */
#include "../common.h"
#include <signal.h>

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    const char *signal = getenv("ENDED_BY");
    if (!signal) return trial_finish();
    raise(atoi(signal));
    MPI_Finalize();
    return 0;
}
