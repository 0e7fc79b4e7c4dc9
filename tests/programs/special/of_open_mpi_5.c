/* What Open MPI 5 has more than 4 and is carried: both ways at once, a communicator with hints, infos. Open MPI 4 has not these names, so that it is linked without them.
 * trial: ranks=2,3 */
#include "../common.h"

#if defined OPEN_MPI && OMPI_MAJOR_VERSION < 5
#define LATER __attribute__((weak))
LATER int MPI_Isendrecv(const void *, int, MPI_Datatype, int, int, void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
LATER int MPI_Isendrecv_replace(void *, int, MPI_Datatype, int, int, int, int, MPI_Comm, MPI_Request *);
LATER int MPI_Comm_idup_with_info(MPI_Comm, MPI_Info, MPI_Comm *, MPI_Request *);
LATER int MPI_Info_create_env(int, char **, MPI_Info *);
LATER int MPI_Info_get_string(MPI_Info, const char *, int *, char *, int *);
#endif

enum { LONG = 40000 };
static int out[LONG], in[LONG];

static void string_of(MPI_Info info, const char *key, const char *expected) {
    char text[4] = "...";
    int room = 0, flag = -1;
    MUST(MPI_Info_get_string(info, key, &room, text, &flag));
    CHECK(flag == 1 && room == (int)strlen(expected) + 1 && text[0] == '.', "%s: %d bytes", key, room);
    room = sizeof text;
    MUST(MPI_Info_get_string(info, key, &room, text, &flag));
    CHECK(flag == 1 && !strncmp(text, expected, 3) && text[3] == 0, "%s: '%s'", key, text);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int next = (trial_rank + 1) % trial_size, previous = (trial_rank + trial_size - 1) % trial_size;
    int turned = 7 + trial_rank, sum = 0, flag = -1;
    MPI_Request both[2], made;
    MPI_Comm copy;
    MPI_Info info, environment;
    MUST(MPI_Info_create(&info));
    MUST(MPI_Info_set(info, "colour", "yellow"));
    MUST(MPI_Info_create_env(0, NULL, &environment));
    for (int i = 0; i < LONG; i++) out[i] = 1000 * trial_rank + i;
    MUST(MPI_Isendrecv(out, LONG, MPI_INT, next, 11, in, LONG, MPI_INT, previous, 11, MPI_COMM_WORLD, &both[0]));
    MUST(MPI_Isendrecv_replace(&turned, 1, MPI_INT, next, 12, previous, 12, MPI_COMM_WORLD, &both[1]));
    MUST(MPI_Comm_idup_with_info(MPI_COMM_WORLD, info, &copy, &made));
    string_of(info, "colour", "yellow");

    trial_ready();
    trial_wait();

    MUST(MPI_Wait(&made, MPI_STATUS_IGNORE));
    MUST(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    for (int i = 0; i < LONG; i++) CHECK(in[i] == 1000 * previous + i, "at %d: %d", i, in[i]);
    CHECK(turned == 7 + previous, "%d", turned);
    MUST(MPI_Allreduce(&trial_rank, &sum, 1, MPI_INT, MPI_SUM, copy));
    CHECK(sum == trial_size * (trial_size - 1) / 2, "%d", sum);
    string_of(info, "colour", "yellow");
    char most[16] = "";
    MUST(MPI_Info_get(environment, "maxprocs", sizeof most - 1, most, &flag));
    CHECK(flag && atoi(most) == trial_size, "%s", most);
    MUST(MPI_Info_free(&environment));
    MUST(MPI_Info_free(&info));
    MUST(MPI_Comm_free(&copy));
    return trial_finish();
}
