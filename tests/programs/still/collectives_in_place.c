/* MPI_IN_PLACE in every collective that takes it, before and after.
 * trial: ranks=2,4 safe_states=clock,barrier */
#include "../common.h"

static int v(int rank, int i) { return 1000 * rank + i; }

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int n = trial_size, r = trial_rank;
    for (int round = 0; round < 2; round++) {
        if (round == 1) trial_hold();
        int a[16], counts[8], places[8], sum = 0;
        for (int i = 0; i < n; i++) counts[i] = 2, places[i] = 2 * i, sum += v(i, 0);
        MPI_Datatype types[8] = {MPI_INT, MPI_INT, MPI_INT, MPI_INT, MPI_INT, MPI_INT, MPI_INT, MPI_INT};
        int bytes[8];
        for (int i = 0; i < 8; i++) bytes[i] = 8 * i;
        for (int form = 0; form < 12; form++) {
            for (int i = 0; i < 16; i++) a[i] = -1;
            int all_to_all = form >= 4 && form <= 6, gather = form <= 3;
            if (all_to_all) for (int i = 0; i < 2 * n; i++) a[i] = v(r, i);
            else if (gather) a[2 * r] = v(r, 0), a[2 * r + 1] = v(r, 1);
            else for (int i = 0; i < 2 * n; i++) a[i] = v(r, i);
            int root = round % n, at_root = r == root;
            switch (form) {
            case 0: MUST(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, a, 2, MPI_INT, MPI_COMM_WORLD)); break;
            case 1:
                MUST(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, a, counts, places, MPI_INT, MPI_COMM_WORLD));
                break;
            case 2:
                if (at_root) MUST(MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, a, 2, MPI_INT, root, MPI_COMM_WORLD));
                else MUST(MPI_Gather(a + 2 * r, 2, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, root, MPI_COMM_WORLD));
                break;
            case 3:
                if (at_root)
                    MUST(MPI_Gatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, a, counts, places, MPI_INT, root,
                                     MPI_COMM_WORLD));
                else
                    MUST(MPI_Gatherv(a + 2 * r, 2, MPI_INT, NULL, NULL, NULL, MPI_DATATYPE_NULL, root, MPI_COMM_WORLD));
                break;
            case 4: MUST(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, a, 2, MPI_INT, MPI_COMM_WORLD)); break;
            case 5:
                MUST(MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, a, counts, places, MPI_INT,
                                   MPI_COMM_WORLD));
                break;
            case 6:
                MUST(MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, a, counts, bytes, types, MPI_COMM_WORLD));
                break;
            case 7: MUST(MPI_Allreduce(MPI_IN_PLACE, a, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD)); break;
            case 8:
                MUST(MPI_Reduce(at_root ? MPI_IN_PLACE : a, at_root ? a : NULL, 2, MPI_INT, MPI_SUM, root,
                                MPI_COMM_WORLD));
                break;
            case 9: MUST(MPI_Scan(MPI_IN_PLACE, a, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD)); break;
            case 10: MUST(MPI_Reduce_scatter_block(MPI_IN_PLACE, a, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD)); break;
            case 11:
                if (at_root) MUST(MPI_Scatter(a, 2, MPI_INT, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, root, MPI_COMM_WORLD));
                else MUST(MPI_Scatter(NULL, 0, MPI_DATATYPE_NULL, a, 2, MPI_INT, root, MPI_COMM_WORLD));
                break;
            }
            for (int i = 0; i < 2; i++) {
                int before = 0;
                for (int rank = 0; rank <= r; rank++) before += v(rank, i);
                if (gather && (at_root || form < 2))
                    for (int k = 0; k < n; k++) CHECK(a[2 * k + i] == v(k, i), "form %d: %d", form, a[2 * k + i]);
                if (all_to_all)
                    for (int k = 0; k < n; k++)
                        CHECK(a[2 * k + i] == v(k, 2 * r + i), "form %d: %d", form, a[2 * k + i]);
                if (form == 7 || (form == 8 && at_root)) CHECK(a[i] == sum + n * i, "form %d: %d", form, a[i]);
                if (form == 9) CHECK(a[i] == before, "form %d: %d", form, a[i]);
                if (form == 10) CHECK(a[i] == sum + n * (2 * r + i), "form %d: %d", form, a[i]);
                if (form == 11) CHECK(a[i] == (at_root ? v(r, i) : v(root, 2 * r + i)), "form %d: %d", form, a[i]);
            }
        }
    }
    return trial_finish();
}
