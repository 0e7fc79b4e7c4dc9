/* Locks on files are held after a checkpoint and after a restart, as another process finds out: of the process, of an open file,
 * of a whole file; for reading and for writing; on ranges, on a file that is mapped and on one that has lost its name.
 * trial: ranks=2 */
#include "../common.h"
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>

static int lock(int descriptor, int command, short type, off_t start, off_t length) {
    struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
    return fcntl(descriptor, command, &range);
}

/* What a process that is not this one finds in its way: F_UNLCK, F_RDLCK, F_WRLCK. */
static int found(int descriptor, off_t start, off_t length) {
    struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
    pid_t child = fork();
    if (child == 0) _exit(fcntl(descriptor, F_GETLK, &range) == 0 ? range.l_type : 99);
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

static int files[5];
static char whole[PATH_MAX];

static void look(const char *when) {
    CHECK(found(files[0], 10, 10) == F_WRLCK, "%s: bytes 10 to 19: %d", when, found(files[0], 10, 10));
    CHECK(found(files[0], 0, 10) == F_UNLCK && found(files[0], 20, 10) == F_UNLCK, "%s: more is locked", when);
    CHECK(found(files[0], 100, 1) == F_RDLCK && found(files[0], 1 << 20, 1) == F_RDLCK, "%s: from byte 100 on", when);
    CHECK(found(files[1], 5, 5) == F_WRLCK, "%s: the open file's: %d", when, found(files[1], 5, 5));
    CHECK(found(files[3], 0, 0) == F_WRLCK, "%s: the mapped file's: %d", when, found(files[3], 0, 0));
    CHECK(found(files[4], 0, 0) == F_WRLCK, "%s: the nameless file's: %d", when, found(files[4], 0, 0));
    int other = open(whole, O_RDWR);
    CHECK(flock(other, LOCK_EX | LOCK_NB) == -1 && errno == EWOULDBLOCK, "%s: flock: the file is not locked", when);
    CHECK(flock(other, LOCK_SH | LOCK_NB) == 0, "%s: flock: not a lock for reading", when);
    close(other);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    char path[PATH_MAX], name[32];
    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "locked%d", i);
        trial_own_file(path, sizeof path, name);
        files[i] = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
        CHECK(ftruncate(files[i], 4096) == 0, "length");
        if (i == 4) unlink(path);
        if (i == 2) strcpy(whole, path);
    }
    CHECK(lock(files[0], F_SETLK, F_WRLCK, 10, 10) == 0 && lock(files[0], F_SETLK, F_RDLCK, 100, 0) == 0, "lock: %s", strerror(errno));
    CHECK(lock(files[1], F_OFD_SETLK, F_WRLCK, 5, 5) == 0, "lock: %s", strerror(errno));
    CHECK(flock(files[2], LOCK_SH) == 0, "flock: %s", strerror(errno));
    CHECK(lock(files[3], F_SETLK, F_WRLCK, 0, 0) == 0 && lock(files[4], F_SETLK, F_WRLCK, 0, 0) == 0, "lock: %s", strerror(errno));
    char *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, files[3], 0);
    CHECK(map != MAP_FAILED, "mmap: %s", strerror(errno));
    strcpy(map, "mapped");
    look("before");
    trial_hold();
    look("after");
    CHECK(strcmp(map, "mapped") == 0, "the mapped file holds '%s'", map);
    CHECK(lock(files[0], F_SETLK, F_UNLCK, 10, 10) == 0 && found(files[0], 10, 10) == F_UNLCK, "a lock cannot be given back");
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
