/* The functions that only ask - versions, names, clocks, bounds, addresses - answer sensibly afterwards.
 * trial: ranks=2 */
#include "../common.h"

int main(int argc, char **argv) {
    int flag = -1, version = 0, subversion = 0, length = 0;
    MPI_Initialized(&flag);
    CHECK(!flag, "initialized before MPI_Init");
    trial_start(&argc, &argv);
    char name[MPI_MAX_PROCESSOR_NAME] = "", again[MPI_MAX_PROCESSOR_NAME] = "";
    char library[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    MUST(MPI_Get_processor_name(name, &length));
    double before = MPI_Wtime();
    int *bound = NULL, *host = NULL, *io = NULL;
    MUST(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &flag));
    CHECK(flag, "no MPI_TAG_UB");
    trial_hold();
    double after = MPI_Wtime();
    CHECK(after >= before && after < before + 600, "MPI_Wtime went from %f to %f", before, after);
    CHECK(MPI_Wtick() > 0 && MPI_Wtick() < 1, "MPI_Wtick %g", MPI_Wtick());
    MUST(MPI_Get_processor_name(again, &length));
    CHECK(strcmp(name, again) == 0 && length == (int)strlen(again), "processor name '%s', was '%s'", again, name);
    MUST(MPI_Get_version(&version, &subversion));
    CHECK(version == MPI_VERSION && subversion == MPI_SUBVERSION, "version %d.%d", version, subversion);
    MUST(MPI_Get_library_version(library, &length));
    CHECK(length > 0 && library[0] != 0, "library '%s'", library);
    MUST(MPI_Initialized(&flag));
    CHECK(flag, "not initialized");
    MUST(MPI_Finalized(&flag));
    CHECK(!flag, "finalized");
    CHECK(*bound >= 32767, "the bound of tags that was asked for before is %d now", *bound);
    MUST(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_HOST, &host, &flag));
    MUST(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &io, &flag));
    CHECK(!flag || io != NULL, "MPI_IO");
    int *size = NULL;
    MUST(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &size, &flag));
    CHECK(!flag || *size >= 1, "MPI_UNIVERSE_SIZE");
    MPI_Aint here = 0, there = 0;
    char array[10];
    MUST(MPI_Get_address(&array[2], &here));
    MUST(MPI_Get_address(&array[7], &there));
    CHECK(MPI_Aint_diff(there, here) == 5 && MPI_Aint_add(here, 5) == there, "addresses");
    MPI_Comm parent;
    MUST(MPI_Comm_get_parent(&parent));
    CHECK(parent == MPI_COMM_NULL, "a parent");
    int main_thread = 0, level = -1;
    MUST(MPI_Is_thread_main(&main_thread));
    MUST(MPI_Query_thread(&level));
    CHECK(main_thread && level >= MPI_THREAD_SINGLE, "main thread %d, level %d", main_thread, level);
    /* A tag as large as they come. */
    int value = 9, got = 0, peer = 1 - trial_rank;
    MUST(MPI_Sendrecv(&value, 1, MPI_INT, peer, *bound, &got, 1, MPI_INT, peer, *bound, MPI_COMM_WORLD,
                      MPI_STATUS_IGNORE));
    CHECK(got == 9, "got %d", got);
    MPI_Finalize();
    MPI_Finalized(&flag);
    CHECK(flag, "not finalized");
    if (trial_failures) return 1;
    printf("OK %d\n", trial_rank);
    return 0;
}
