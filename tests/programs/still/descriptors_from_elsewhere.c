/* Descriptors that come in messages, by options and by requests are the program's own: it can duplicate, close and carry them.
 * trial: ranks=1 */
#include "../common.h"
#include <linux/io_uring.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

enum { MESSAGES = 3, EACH = 2 };

static void is_own(int number, const char *what) {
    int other = dup(number);
    CHECK(other >= 0, "%s: %d cannot be duplicated: %s", what, number, strerror(errno));
    CHECK(dup2(number, other) == other, "%s: %s", what, strerror(errno));
    CHECK(close(other) == 0, "%s: %s", what, strerror(errno));
    CHECK(close(number) == 0, "%s: %d cannot be closed: %s", what, number, strerror(errno));
    CHECK(fcntl(number, F_GETFD) < 0, "%s: %d is open still", what, number);
}

static void send_descriptors(int to, int number) {
    char control[CMSG_SPACE(EACH * sizeof(int))] = {0};
    struct iovec data = {"x", 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    *head = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(EACH * sizeof(int))};
    memcpy(CMSG_DATA(head), (int[EACH]){number, number}, EACH * sizeof(int));
    CHECK(sendmsg(to, &message, 0) == 1, "%s", strerror(errno));
}

static void from_messages(void) {
    int ends[2], file = open("/dev/null", O_RDWR);
    CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0, "%s", strerror(errno));
    for (int i = 0; i < MESSAGES; i++) send_descriptors(ends[0], file);
    struct mmsghdr messages[MESSAGES + 1] = {0};
    struct iovec data[MESSAGES + 1];
    char bytes[MESSAGES + 1], control[MESSAGES + 1][CMSG_SPACE(EACH * sizeof(int))];
    for (int i = 0; i <= MESSAGES; i++) {
        data[i] = (struct iovec){&bytes[i], 1};
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &data[i], .msg_iovlen = 1, .msg_control = control[i], .msg_controllen = sizeof control[i]};
    }
    int came = recvmmsg(ends[1], messages, MESSAGES + 1, MSG_DONTWAIT, NULL);
    CHECK(came == MESSAGES, "%d messages: %s", came, strerror(errno));
    for (int i = 0; i < came; i++) {
        int numbers[EACH];
        memcpy(numbers, CMSG_DATA(CMSG_FIRSTHDR(&messages[i].msg_hdr)), sizeof numbers);
        for (int j = 0; j < EACH; j++) is_own(numbers[j], "from recvmmsg");
    }
    send_descriptors(ends[0], file);
    CHECK(recvmsg(ends[1], &messages[0].msg_hdr, 0) == 1, "%s", strerror(errno));
    int numbers[EACH];
    memcpy(numbers, CMSG_DATA(CMSG_FIRSTHDR(&messages[0].msg_hdr)), sizeof numbers);
    for (int j = 0; j < EACH; j++) is_own(numbers[j], "from recvmsg");
    close(file);
    close(ends[0]);
    close(ends[1]);
}

/* Kernels without them say so. */
static void from_requests(void) {
    int ends[2], number = -1;
    socklen_t bytes = sizeof number;
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    if (getsockopt(ends[0], SOL_SOCKET, 77 /* SO_PEERPIDFD */, &number, &bytes) == 0) is_own(number, "SO_PEERPIDFD");
    close(ends[0]);
    close(ends[1]);
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal >= 0) {
        unlockpt(terminal);
        number = ioctl(terminal, TIOCGPTPEER, O_RDWR | O_NOCTTY);
        if (number >= 0) is_own(number, "TIOCGPTPEER");
        close(terminal);
    }
    number = (int)syscall(SYS_fsopen, "tmpfs", 0);
    if (number >= 0) is_own(number, "fsopen");
    number = (int)syscall(SYS_open_tree, AT_FDCWD, "/", 0);
    if (number >= 0) is_own(number, "open_tree");
    number = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (number >= 0) is_own(number, "pidfd_open");
    unsigned long long handled = 1;
    number = (int)syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0);
    if (number >= 0) is_own(number, "landlock_create_ruleset");
}

/* Operations of a ring make descriptors that no call returns. */
static void from_a_ring(void) {
    struct io_uring_params parameters = {0};
    int ring = (int)syscall(SYS_io_uring_setup, 4, &parameters);
    if (ring < 0) return;
    size_t bytes = parameters.cq_off.cqes + parameters.cq_entries * sizeof(struct io_uring_cqe);
    size_t more = parameters.sq_off.array + parameters.sq_entries * sizeof(unsigned);
    if (more > bytes) bytes = more;
    char *queues = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    struct io_uring_sqe *entries = mmap(NULL, parameters.sq_entries * sizeof *entries, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
    CHECK(queues != MAP_FAILED && entries != MAP_FAILED, "%s", strerror(errno));
    memset(entries, 0, sizeof *entries);
    *entries = (struct io_uring_sqe){.opcode = IORING_OP_OPENAT, .fd = AT_FDCWD, .addr = (uintptr_t)"/dev/null", .open_flags = O_RDWR};
    *(unsigned *)(queues + parameters.sq_off.array) = 0;
    __atomic_store_n((unsigned *)(queues + parameters.sq_off.tail), 1, __ATOMIC_RELEASE);
    CHECK(syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 1, "%s", strerror(errno));
    struct io_uring_cqe *done = (void *)(queues + parameters.cq_off.cqes);
    CHECK(done->res >= 0, "%s", strerror(-done->res));
    if (done->res >= 0) is_own(done->res, "from a ring");
    munmap(entries, parameters.sq_entries * sizeof *entries);
    munmap(queues, bytes);
    close(ring);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    for (int restarted = 0; restarted < 2; restarted++) {
        from_messages();
        from_requests();
        from_a_ring();
        if (!restarted) trial_hold();
    }
    return trial_finish();
}
