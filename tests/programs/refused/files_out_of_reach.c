/* What a restart could not open again is tried while the program lives, and named: a file that has lost the name that it was
 * opened by, one that may not be opened any more, what /proc shows of one thread and of another process, a lease, unread events,
 * reported changes, a message queue, and the directory that the program is in. The program goes on as if nobody had looked.
 * trial: ranks=2 flags=-lrt refuses=lost-file,proc-file,lease,unread-events,directory-notices,message-queue,working-directory,signal-owner */
#include "../common.h"
#include <mqueue.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/stat.h>

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    char path[PATH_MAX], other[PATH_MAX], text[PATH_MAX];
    trial_own_file(path, sizeof path, "first");
    trial_own_file(other, sizeof other, "second");
    int linked = -1, thread = -1, init = -1, leased = -1, watches = -1, reported = -1, queue = -1, foreign[2] = {-1, -1};
    signal(SIGIO, SIG_IGN);
    if (trial_rank == 0) {
        linked = open(path, O_CREAT | O_RDWR, 0600);
        CHECK((link(path, other) == 0 || errno == EEXIST) && unlink(path) == 0, "link: %s", strerror(errno));
        snprintf(text, sizeof text, "/proc/self/task/%d/stat", getpid());
        thread = open(text, O_RDONLY);
        init = open("/proc/1/stat", O_RDONLY);
        trial_own_file(path, sizeof path, "leased");
        leased = open(path, O_CREAT | O_RDONLY, 0600);
        CHECK(fcntl(leased, F_SETLEASE, F_RDLCK) == 0, "lease: %s", strerror(errno));
        CHECK(linked >= 0 && thread >= 0 && init >= 0, "open: %s", strerror(errno));
    } else {
        trial_own_file(path, sizeof path, "noticed");
        CHECK(mkdir(path, 0700) == 0 || errno == EEXIST, "mkdir: %s", strerror(errno));
        watches = inotify_init1(IN_NONBLOCK);
        CHECK(inotify_add_watch(watches, path, IN_CREATE) > 0, "watch: %s", strerror(errno));
        snprintf(text, sizeof text, "%.4000s/new", path);
        unlink(text);
        close(open(text, O_CREAT | O_RDWR, 0600));
        reported = open(path, O_RDONLY | O_DIRECTORY);
        CHECK(fcntl(reported, F_NOTIFY, DN_DELETE | DN_MULTISHOT) == 0, "F_NOTIFY: %s", strerror(errno));
        snprintf(text, sizeof text, "/trial-%d", getpid());
        queue = mq_open(text, O_CREAT | O_RDWR, 0600, NULL);
        CHECK(queue >= 0, "message queue: %s", strerror(errno));
        CHECK(pipe(foreign) == 0 && fcntl(foreign[0], F_SETOWN, 1) == 0, "owner: %s", strerror(errno));
        trial_own_file(path, sizeof path, "removed");
        CHECK((mkdir(path, 0700) == 0 || errno == EEXIST) && chdir(path) == 0 && rmdir("../removed.1") == 0, "directory: %s", strerror(errno));
    }
    trial_hold();
    if (trial_rank == 0) {
        struct stat status;
        CHECK(write(linked, "x", 1) == 1 && stat(other, &status) == 0 && status.st_size == 1, "the file with another name");
        CHECK(read(thread, text, 1) == 1 && read(init, text, 1) == 1, "/proc: %s", strerror(errno));
        CHECK(fcntl(leased, F_GETLEASE) == F_RDLCK, "the lease is %d", fcntl(leased, F_GETLEASE));
        unlink(other);
    } else {
        char events[4096];
        CHECK(read(watches, events, sizeof events) == (ssize_t)(sizeof(struct inotify_event) + 16), "events: %s", strerror(errno));
        CHECK(read(watches, events, sizeof events) == -1 && errno == EAGAIN, "more events than the program has caused");
        struct mq_attr attributes;
        snprintf(text, sizeof text, "/trial-%d", getpid());
        mq_unlink(text);
        CHECK(mq_getattr(queue, &attributes) == 0 && attributes.mq_curmsgs == 0, "message queue: %s", strerror(errno));
        CHECK(getcwd(text, sizeof text) == NULL && errno == ENOENT, "the directory is back");
    }
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
