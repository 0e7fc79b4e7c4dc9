/* Transfers that are blocked half-way do not notice the checkpoint: they go on to their last byte. One that a handler of the application's ends is cut short.
 * trial: ranks=1 flags=-pthread */
#include "../common.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { WRITE, WRITEV, WRITE_SOCKET, WRITEV_SOCKET, SEND, SENDMSG, SENDFILE, HANDLED, RECV, RECVMSG, WAYS };
static const char *names[] = {"write", "writev", "write to a socket", "writev to a socket", "send", "sendmsg", "sendfile", "write with a handler", "recv", "recvmsg"};
enum { BYTES = 1 << 20, SOME = 40000, PIECES = 7 };
static unsigned char block[WAYS][BYTES], other[BYTES];
static int ends[WAYS][2], file;
static long result[WAYS];
static pthread_t threads[WAYS];
static atomic_int begun;
static volatile int handled;

static void handler(int signal) {
    (void)signal;
    handled++;
}

static int receives(int way) {
    return way >= RECV;
}

static long transfer(int way) {
    struct iovec pieces[PIECES + 1];
    size_t each = BYTES / PIECES;
    for (int i = 0; i < PIECES; i++) pieces[i] = (struct iovec){block[way] + (size_t)i * each, i < PIECES - 1 ? each : BYTES - (PIECES - 1) * each};
    pieces[PIECES] = (struct iovec){NULL, 0};
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = PIECES + 1};
    off_t from = 0;
    switch (way) {
    case WRITE:
    case WRITE_SOCKET:
    case HANDLED: return write(ends[way][1], block[way], BYTES);
    case WRITEV:
    case WRITEV_SOCKET: return writev(ends[way][1], pieces, PIECES + 1);
    case SEND: return send(ends[way][1], block[way], BYTES, 0);
    case SENDMSG: return sendmsg(ends[way][1], &message, 0);
    case SENDFILE: return sendfile(ends[way][1], file, &from, BYTES);
    case RECV: return recv(ends[way][0], block[way], BYTES, MSG_WAITALL);
    case RECVMSG: return recvmsg(ends[way][0], &message, MSG_WAITALL);
    }
    return -2;
}

static void *body(void *argument) {
    int way = (int)(intptr_t)argument;
    begun++;
    result[way] = transfer(way);
    close(ends[way][1]);
    return NULL;
}

int main(int argc, char **argv) {
    trial_start_threads(&argc, &argv, MPI_THREAD_FUNNELED);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    char path[PATH_MAX];
    trial_own_file(path, sizeof path, "bytes");
    file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    trial_fill(other, BYTES, SENDFILE);
    CHECK(write(file, other, BYTES) == BYTES, "%s: %s", path, strerror(errno));
    for (int way = 0; way < WAYS; way++) {
        int is_pipe = way == WRITE || way == WRITEV || way == HANDLED;
        CHECK((is_pipe ? pipe(ends[way]) : socketpair(AF_UNIX, SOCK_STREAM, 0, ends[way])) == 0, "%s", strerror(errno));
        trial_fill(receives(way) ? other : block[way], BYTES, (uint64_t)way);
        if (receives(way)) CHECK(write(ends[way][1], other, SOME) == SOME, "%s", strerror(errno));
        pthread_create(&threads[way], NULL, body, (void *)(intptr_t)way);
    }
    while (begun < WAYS) usleep(1000);
    usleep(100000);
    trial_hold();
    usleep(50000);
    pthread_kill(threads[HANDLED], SIGUSR1);
    pthread_join(threads[HANDLED], NULL);
    CHECK(handled == 1 && result[HANDLED] > 0 && result[HANDLED] < BYTES, "%s gives %ld", names[HANDLED], result[HANDLED]);
    for (int way = 0; way < WAYS; way++) {
        size_t all = receives(way) ? SOME : 0;
        unsigned char *got = receives(way) ? block[way] : other;
        if (receives(way)) {
            trial_fill(other, BYTES, (uint64_t)way);
            for (ssize_t some; all < BYTES && (some = write(ends[way][1], other + all, BYTES - all)) > 0;) all += (size_t)some;
        } else {
            for (ssize_t some; (some = read(ends[way][0], other + all, BYTES - all)) > 0;) all += (size_t)some;
        }
        if (way == HANDLED) {
            CHECK((long)all == result[way], "%zu bytes of %ld", all, result[way]);
            continue;
        }
        pthread_join(threads[way], NULL);
        CHECK(result[way] == BYTES && all == BYTES, "%s gives %ld; %zu went through", names[way], result[way], all);
        CHECK(trial_differs(got, BYTES, (uint64_t)way) == -1, "%s: byte %ld", names[way], trial_differs(got, BYTES, (uint64_t)way));
    }
    return trial_finish();
}
