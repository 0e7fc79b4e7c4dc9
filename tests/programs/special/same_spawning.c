/* Processes that the program spawns, in a directory that an info names, and ports, are passed through faithfully.
 * trial: ranks=2 */
#include "../same.h"
#include <unistd.h>

static void talk(MPI_Comm children) {
    int number = 42, members;
    MPI_Comm_remote_size(children, &members);
    say("children", members);
    MPI_Bcast(&number, 1, MPI_INT, rank == 0 ? MPI_ROOT : MPI_PROC_NULL, children);
    MPI_Comm_disconnect(&children);
    say("disconnected", children == MPI_COMM_NULL);
}

int main(int argc, char **argv) {
    MPI_Comm parent, children;
    begin(argc, argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        int number = 0;
        MPI_Bcast(&number, 1, MPI_INT, 0, parent);
        char directory[4096] = "";
        printf("child %d got %d in %s\n", rank, number, getcwd(directory, sizeof directory));
        MPI_Comm_disconnect(&parent);
        MPI_Finalize();
        return 0;
    }
    int codes[2] = {7, 7}, each[2] = {1, 1};
    char *commands[2] = {argv[0], argv[0]};
    MPI_Info infos[2] = {MPI_INFO_NULL, MPI_INFO_NULL};
    MPI_Info_create(&infos[1]);
    MPI_Info_set(infos[1], "wdir", "/");
    say_class("spawn", MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, infos[1], 0, MPI_COMM_WORLD,
                                      &children, codes));
    say_numbers("codes", codes, 2);
    talk(children);
    say_class("spawn two commands",
              MPI_Comm_spawn_multiple(2, commands, MPI_ARGVS_NULL, each, infos, 0, MPI_COMM_WORLD,
                                      &children, MPI_ERRCODES_IGNORE));
    talk(children);
    MPI_Info_free(&infos[1]);

    /* The two processes connect to each other as strangers would. */
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm other;
    if (rank == 0) MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
    else
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
    int mine = rank, theirs = -1;
    MPI_Sendrecv(&mine, 1, MPI_INT, 0, 1, &theirs, 1, MPI_INT, 0, 1, other, MPI_STATUS_IGNORE);
    say("the other", theirs);
    MPI_Comm_disconnect(&other);
    if (rank == 0) MPI_Close_port(port);
    MPI_Finalize();
    return 0;
}
