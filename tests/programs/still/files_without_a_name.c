/* Files that never had a name, and descriptors that lead to places and not to bytes: tmpfile(), O_TMPFILE, which is given a name
 * after the restart, what /proc shows of this very process, O_PATH, and a standard stream that the program has closed. A limit
 * on the length of the program's files is no limit on its image.
 * trial: ranks=2 */
#include "../common.h"
#include <dirent.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

static volatile sig_atomic_t too_long;
static void on_too_long(int signal) { (void)signal, too_long++; }

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    char path[PATH_MAX], text[64] = "", given[PATH_MAX];
    FILE *temporary = tmpfile();
    CHECK(temporary && fputs("temporary\n", temporary) >= 0 && fflush(temporary) == 0, "tmpfile: %s", strerror(errno));
    trial_own_file(path, sizeof path, "directory");
    CHECK(mkdir(path, 0700) == 0 || errno == EEXIST, "mkdir: %s", strerror(errno));
    int nameless = open(path, O_RDWR | O_TMPFILE, 0640), writer = open(path, O_WRONLY | O_TMPFILE | O_APPEND, 0600);
    CHECK(nameless >= 0 && writer >= 0, "O_TMPFILE: %s", strerror(errno));
    CHECK(write(nameless, "to be named", 11) == 11 && write(writer, "one", 3) == 3, "write");
    snprintf(text, sizeof text, "/proc/self/fd/%d", writer);
    int reader = open(text, O_RDONLY);
    CHECK(reader >= 0 && read(reader, text, 3) == 3, "the same file, to be read: %s", strerror(errno));

    snprintf(text, sizeof text, "/trial-%d", getpid());
    int memory = shm_open(text, O_CREAT | O_RDWR, 0600), streams[2], second_reader;
    CHECK(memory >= 0 && shm_unlink(text) == 0 && write(memory, "shm", 3) == 3, "shm_open: %s", strerror(errno));
    /* Packets in a pipe, which only its writing end says, and another opening of its reading end. */
    CHECK(pipe2(streams, O_DIRECT) == 0 && write(streams[1], "ab", 2) == 2 && write(streams[1], "cde", 3) == 3, "packets");
    snprintf(text, sizeof text, "/proc/self/fd/%d", streams[0]);
    second_reader = open(text, O_RDONLY | O_NONBLOCK);
    CHECK(second_reader >= 0, "the reading end, opened again: %s", strerror(errno));

    DIR *own = opendir("/proc/self/fd");
    CHECK(own && readdir(own), "opendir: %s", strerror(errno));
    int self = open("/proc/self", O_RDONLY | O_DIRECTORY), status = open("/proc/self/status", O_RDONLY);
    char link[PATH_MAX];
    snprintf(link, sizeof link, "%.4000s/link", path);
    CHECK(symlink("nowhere", link) == 0 || errno == EEXIST, "symlink: %s", strerror(errno));
    int place = open(path, O_PATH), linked = open(link, O_PATH | O_NOFOLLOW);
    CHECK(place >= 0 && linked >= 0, "O_PATH: %s", strerror(errno));
    if (trial_rank == 1) close(0);
    struct rlimit limit = {.rlim_cur = 4096, .rlim_max = RLIM_INFINITY};
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = 4096;
    signal(SIGXFSZ, on_too_long);
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0, "limit: %s", strerror(errno));
    trial_hold();
    if (trial_rank == 1) {
        CHECK(read(0, text, 1) == -1 && errno == EBADF, "standard input has come back");
        CHECK(open("/dev/null", O_RDONLY) == 0, "the lowest number is not free");
    }
    limit.rlim_cur = 0;
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur == 4096, "the limit is %ld", (long)limit.rlim_cur);
    CHECK(too_long == 0, "%d signals", (int)too_long);
    CHECK(pwrite(nameless, "x", 1, 4096) == -1 && errno == EFBIG && too_long == 1, "the limit does not hold");

    rewind(temporary);
    CHECK(fgets(text, sizeof text, temporary) && strcmp(text, "temporary\n") == 0, "tmpfile: '%s'", text);
    struct stat found;
    CHECK(fstat(nameless, &found) == 0 && (found.st_mode & 0777) == 0640 && found.st_nlink == 0, "mode %o", found.st_mode);
    trial_own_file(given, sizeof given, "given");
    unlink(given);
    snprintf(text, sizeof text, "/proc/self/fd/%d", nameless);
    CHECK(linkat(AT_FDCWD, text, AT_FDCWD, given, AT_SYMLINK_FOLLOW) == 0, "linkat: %s", strerror(errno));
    int again = open(given, O_RDONLY);
    CHECK(read(again, text, 11) == 11 && memcmp(text, "to be named", 11) == 0, "under its name: '%.11s'", text);
    CHECK(write(writer, "two", 3) == 3 && read(reader, text, 8) == 3 && memcmp(text, "two", 3) == 0, "written and read: '%.3s'", text);

    CHECK(pread(memory, text, 3, 0) == 3 && memcmp(text, "shm", 3) == 0, "shm_open");
    CHECK(read(streams[0], text, sizeof text) == 2 && read(second_reader, text, sizeof text) == 3 && memcmp(text, "cde", 3) == 0, "packets");
    CHECK(read(second_reader, text, 1) == -1 && errno == EAGAIN, "the other opening waits");

    int entries = 0, itself = 0;
    rewinddir(own);
    for (struct dirent *entry; (entry = readdir(own));) entries++, itself |= atoi(entry->d_name) == dirfd(own);
    CHECK(itself && entries > 8, "/proc/self/fd: %d entries", entries);
    int name = openat(self, "comm", O_RDONLY);
    char own_name[16] = "";
    prctl(PR_GET_NAME, own_name);
    CHECK(name >= 0 && read(name, text, sizeof text) > 0 && strncmp(text, own_name, strlen(own_name)) == 0, "/proc/self/comm: %.15s", text);
    CHECK(read(status, text, 5) == 5 && memcmp(text, "Name:", 5) == 0, "/proc/self/status");
    CHECK(fstatat(place, "link", &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(found.st_mode), "O_PATH: %s", strerror(errno));
    CHECK(readlinkat(linked, "", text, sizeof text) == 7 && memcmp(text, "nowhere", 7) == 0, "O_PATH of a link: %s", strerror(errno));
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
