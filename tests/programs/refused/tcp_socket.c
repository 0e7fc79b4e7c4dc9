/* A TCP connection of the program's own is open: the checkpoint refuses, and the connection goes on.
 * trial: ranks=2 refuses=open-socket */
#include "../common.h"
#include <netinet/in.h>
#include <sys/socket.h>

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int listener = -1, client = -1, server = -1;
    if (trial_rank == 1) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t length = sizeof address;
        listener = socket(AF_INET, SOCK_STREAM, 0);
        CHECK(bind(listener, (struct sockaddr *)&address, sizeof address) == 0 && listen(listener, 1) == 0, "listen: %s", strerror(errno));
        getsockname(listener, (struct sockaddr *)&address, &length);
        client = socket(AF_INET, SOCK_STREAM, 0);
        CHECK(connect(client, (struct sockaddr *)&address, sizeof address) == 0, "connect: %s", strerror(errno));
        server = accept(listener, NULL, NULL);
        CHECK(write(client, "before", 6) == 6, "write: %s", strerror(errno));
    }
    trial_hold();
    if (trial_rank == 1) {
        char text[16] = "";
        CHECK(write(client, "after", 5) == 5, "write: %s", strerror(errno));
        CHECK(recv(server, text, 11, MSG_WAITALL) == 11 && strcmp(text, "beforeafter") == 0, "received '%s'", text);
    }
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
