/* Every way to name the program's own executable leads to it, in every call that takes a path.
 * trial: ranks=1 flags=-pthread */
#include "../common.h"
#include <dirent.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>

static struct stat own;

static int is_own(const struct stat *found) {
    return found->st_ino == own.st_ino && found->st_dev == own.st_dev && found->st_size == own.st_size;
}

static void leads(const char *path, const char *executable) {
    struct stat found = {0};
    CHECK(stat(path, &found) == 0 && is_own(&found), "%s", path);
    memset(&found, 0, sizeof found);
    CHECK(fstatat(AT_FDCWD, path, &found, 0) == 0 && is_own(&found), "%s", path);
    CHECK(lstat(path, &found) == 0 && S_ISLNK(found.st_mode), "%s", path);
    CHECK(fstatat(AT_FDCWD, path, &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(found.st_mode), "%s", path);
    struct statx more = {0};
    CHECK(statx(AT_FDCWD, path, 0, STATX_INO | STATX_SIZE, &more) == 0 && more.stx_ino == own.st_ino, "%s", path);
    CHECK(statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &more) == 0 && S_ISLNK(more.stx_mode), "%s", path);
    CHECK(access(path, X_OK) == 0, "%s", path);
    CHECK(syscall(SYS_faccessat2, AT_FDCWD, path, R_OK, AT_EACCESS) == 0, "%s", path);
    char value[64];
    CHECK(getxattr(path, "user.stillpoint", value, sizeof value) == 4, "%s: %s", path, strerror(errno));
    struct statfs here, there;
    CHECK(statfs(executable, &here) == 0 && statfs(path, &there) == 0, "%s", path);
    CHECK(here.f_type == there.f_type, "%s", path);
    char name[PATH_MAX] = "";
    CHECK(readlink(path, name, sizeof name - 1) > 0 && strcmp(name, executable) == 0, "%s leads to %s", path, name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(file >= 0 && fstat(file, &found) == 0 && is_own(&found), "%s", path);
    close(file);
}

static void all_lead(const char *executable) {
    char by_id[64], by_thread[64];
    snprintf(by_id, sizeof by_id, "/proc/%d/exe", getpid());
    snprintf(by_thread, sizeof by_thread, "/proc/self/task/%d/exe", gettid());
    const char *paths[] = {"/proc/self/exe", "/proc/thread-self/exe", "//proc/./self//exe", by_id, by_thread};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) leads(paths[i], executable);
    struct stat found = {0};
    int directory = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(fstatat(directory, "exe", &found, 0) == 0 && is_own(&found), "%s", "relative to a directory");
    int file = openat(directory, "exe", O_RDONLY);
    CHECK(file >= 0 && fstat(file, &found) == 0 && is_own(&found), "%s", "relative to a directory");
    close(file);
    close(directory);
    int before = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(chdir("/proc/self") == 0 && stat("exe", &found) == 0 && is_own(&found), "%s", "relative to the working directory");
    CHECK(fchdir(before) == 0, "%s", strerror(errno));
    close(before);
    CHECK(stat("/proc/1/exe", &found) != 0 || !is_own(&found), "%s", "another process's");

    for (int by_descriptor = 0; by_descriptor < 2; by_descriptor++) { /* it starts itself */
        pid_t child = fork();
        if (child == 0) {
            char *arguments[] = {"itself", "again", NULL}, *none[] = {NULL};
            if (by_descriptor) syscall(SYS_execveat, AT_FDCWD, "/proc/self/exe", arguments, none, 0);
            else execve("/proc/self/exe", arguments, none);
            _exit(1);
        }
        int status = -1;
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 42, "%#x", status);
    }
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "again") == 0) return 42;
    char executable[PATH_MAX];
    if (!realpath(argv[0], executable) || stat(executable, &own)) return 1;
    setxattr(executable, "user.stillpoint", "mine", 4, 0);
    trial_start(&argc, &argv);
    all_lead(executable);
    trial_hold();
    all_lead(executable);
    return trial_finish();
}
