/* Arguments that are significant at the root alone: elsewhere they are anything, and nobody looks at them.
 * trial: ranks=2,3 */
#include "../common.h"

#define NO_DATATYPE ((MPI_Datatype)(uintptr_t)0x7777123456780u)
#define NO_ARRAY ((int *)(uintptr_t)0x7777123456780u)
#define NO_BUFFER ((void *)(uintptr_t)0x7777123456780u)
#define NO_COUNT (-3)

enum { MOST = 8 };

static int all[MOST], counts[MOST], places[MOST], got;

/* Each operation gives the root every rank's number, or every rank its own. */
static void each(int root, MPI_Comm comm) {
    int rank, size, own, is_root;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    own = 100 + rank, is_root = rank == root;
    MPI_Datatype type = is_root ? MPI_INT : NO_DATATYPE;
    void *buffer = is_root ? all : NO_BUFFER;
    int count = is_root ? 1 : NO_COUNT, *array = is_root ? counts : NO_ARRAY, *at = is_root ? places : NO_ARRAY;
    for (int form = 0; form < 8; form++) {
        MPI_Request request = MPI_REQUEST_NULL;
        int gathers = form % 2 == 0;
        for (int i = 0; i < size; i++) all[i] = gathers ? -1 : 100 + i, counts[i] = 1, places[i] = i;
        got = -1;
        switch (form) {
        case 0: MUST(MPI_Gather(&own, 1, MPI_INT, buffer, count, type, root, comm)); break;
        case 1: MUST(MPI_Scatter(buffer, count, type, &got, 1, MPI_INT, root, comm)); break;
        case 2: MUST(MPI_Gatherv(&own, 1, MPI_INT, buffer, array, at, type, root, comm)); break;
        case 3: MUST(MPI_Scatterv(buffer, array, at, type, &got, 1, MPI_INT, root, comm)); break;
        case 4: MUST(MPI_Igather(&own, 1, MPI_INT, buffer, count, type, root, comm, &request)); break;
        case 5: MUST(MPI_Iscatter(buffer, count, type, &got, 1, MPI_INT, root, comm, &request)); break;
        case 6: MUST(MPI_Igatherv(&own, 1, MPI_INT, buffer, array, at, type, root, comm, &request)); break;
        case 7: MUST(MPI_Iscatterv(buffer, array, at, type, &got, 1, MPI_INT, root, comm, &request)); break;
        }
        MUST(MPI_Wait(&request, MPI_STATUS_IGNORE));
        if (!gathers) CHECK(got == own, "form %d: scattered %d", form, got);
        for (int i = 0; gathers && is_root && i < size; i++) CHECK(all[i] == 100 + i, "form %d: gathered %d", form, all[i]);
    }
    int sum = -1;
    MUST(MPI_Reduce(&own, is_root ? &sum : NO_BUFFER, 1, MPI_INT, MPI_SUM, root, comm));
    if (is_root) CHECK(sum == 100 * size + size * (size - 1) / 2, "sum %d", sum);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    MPI_Comm copy;
    MPI_Request pending;
    int own = 7 + trial_rank, is_root = trial_rank == 0, values[MOST];
    MUST(MPI_Comm_dup(MPI_COMM_WORLD, &copy));
    each(0, MPI_COMM_WORLD);
    /* One that a restart begins again. */
    MUST(MPI_Igather(&own, 1, MPI_INT, is_root ? values : NO_BUFFER, is_root ? 1 : NO_COUNT,
                     is_root ? MPI_INT : NO_DATATYPE, 0, copy, &pending));
    trial_hold();
    MUST(MPI_Wait(&pending, MPI_STATUS_IGNORE));
    for (int i = 0; is_root && i < trial_size; i++) CHECK(values[i] == 7 + i, "gathered %d", values[i]);
    for (int root = 0; root < trial_size; root++) each(root, copy);
    MUST(MPI_Comm_free(&copy));
    return trial_finish();
}
