/* Processes that the program has spawned are there, others have been and gone: the checkpoint refuses by name, and all work on.
 * trial: ranks=2 refuses=spawned-processes */
#include "../common.h"

/* Gives the number to the children, and takes it back. */
static void talk(MPI_Comm children, int number) {
    int back = -1;
    MUST(MPI_Bcast(&number, 1, MPI_INT, trial_rank == 0 ? MPI_ROOT : MPI_PROC_NULL, children));
    if (trial_rank == 0) {
        MUST(MPI_Recv(&back, 1, MPI_INT, 0, 3, children, MPI_STATUS_IGNORE));
        CHECK(back == number, "%d came back of %d", back, number);
    }
}

static void child(MPI_Comm parent) {
    for (int number = 1; number;) {
        MPI_Bcast(&number, 1, MPI_INT, 0, parent);
        MPI_Send(&number, 1, MPI_INT, 0, 3, parent);
    }
    MPI_Comm_disconnect(&parent);
    MPI_Finalize();
}

int main(int argc, char **argv) {
    MPI_Comm parent, kept, gone;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        child(parent);
        return 0;
    }
    trial_know_ranks();
    MUST(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &kept, MPI_ERRCODES_IGNORE));
    MUST(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &gone, MPI_ERRCODES_IGNORE));
    talk(gone, 0);
    MUST(MPI_Comm_disconnect(&gone));
    talk(kept, 7);
    trial_hold();
    talk(kept, 8);
    talk(kept, 0);
    MUST(MPI_Comm_disconnect(&kept));
    return trial_finish();
}
