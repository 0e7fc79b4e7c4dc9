/* A file system in user space (FUSE) that shows a directory, and does what it is told late or wrong: `user_space LOWER SETTINGS MOUNTPOINT [cached]`. The file
 * SETTINGS is read again each time; it has a line `OPERATION HOW [PATH [FROM]]` for each operation that is to be other than it should be:
 *   a number       so many milliseconds late; the operation `open-image` is an open of a rank's image
 *   EIO ...        it fails with this error
 *   done-EIO ...   it is done, and said to have failed: the answer was lost, or the client gave up waiting for it
 *   short          a write or a read is half done
 *   lies           a sync is not carried out
 * PATH is a part of the path that it is for (`-`: any), FROM the first byte of a write or a read that it is for.
 * With `cached`, the kernel writes whole pages of images from its cache, as a client of NFS does: a page that a program fills in part is read first. */
#define FUSE_USE_VERSION 31
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *lower, *settings;
static int cached;

static const struct { const char *name; int number; } errors[] = {
    {"EIO", EIO}, {"EDQUOT", EDQUOT}, {"ENOSPC", ENOSPC}, {"ESTALE", ESTALE}, {"EACCES", EACCES}, {"EROFS", EROFS},
    {"ENOENT", ENOENT}, {"EEXIST", EEXIST}, {"ENOLCK", ENOLCK}, {"ENOTEMPTY", ENOTEMPTY}, {"ETIMEDOUT", ETIMEDOUT},
};
struct told { int before, after, half, nothing; };

/* What an operation is told to do, besides waiting. */
static struct told told_of(const char *operation, const char *path, off_t from) {
    struct told told = {0};
    FILE *file = fopen(settings, "re");
    char line[256], name[32], how[32], part[96];
    if (!file) return told;
    while (fgets(line, sizeof line, file)) {
        unsigned long long first = 0;
        strcpy(part, "-");
        if (sscanf(line, "%31s %31s %95s %llu", name, how, part, &first) < 2 || strcmp(name, operation)) continue;
        if ((strcmp(part, "-") && !strstr(path, part)) || (unsigned long long)from < first) continue;
        if (how[0] >= '0' && how[0] <= '9') usleep((unsigned)atoi(how) * 1000);
        else if (!strcmp(how, "short")) told.half = 1;
        else if (!strcmp(how, "lies")) told.nothing = 1;
        else {
            int done = !strncmp(how, "done-", 5);
            for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
                if (!strcmp(errors[i].name, how + (done ? 5 : 0))) *(done ? &told.after : &told.before) = errors[i].number;
        }
    }
    fclose(file);
    return told;
}

/* For an operation that is done by the call. */
#define TOLD(operation, path, from) \
    struct told told = told_of(operation, path, from); \
    if (told.before) return -told.before
#define END(call) \
    do { \
        if ((call) == -1) return -errno; \
        return -told.after; \
    } while (0)

#define BELOW(name, path) \
    char name[PATH_MAX]; \
    if (snprintf(name, sizeof name, "%s%s", lower, path) >= (int)sizeof name) return -ENAMETOOLONG
#define DONE(call) return (call) == -1 ? -errno : 0

static int on_getattr(const char *path, struct stat *about, struct fuse_file_info *info) {
    TOLD("getattr", path, 0);
    if (info) END(fstat((int)info->fh, about));
    BELOW(at, path);
    END(lstat(at, about));
}

static int on_readlink(const char *path, char *text, size_t room) {
    BELOW(at, path);
    ssize_t length = readlink(at, text, room - 1);
    if (length < 0) return -errno;
    text[length] = 0;
    return 0;
}

static int on_symlink(const char *text, const char *path) {
    BELOW(at, path);
    DONE(symlink(text, at));
}

static int on_mkdir(const char *path, mode_t mode) {
    TOLD("mkdir", path, 0);
    BELOW(at, path);
    END(mkdir(at, mode));
}

static int on_unlink(const char *path) {
    TOLD("unlink", path, 0);
    BELOW(at, path);
    END(unlink(at));
}

static int on_rmdir(const char *path) {
    TOLD("rmdir", path, 0);
    BELOW(at, path);
    END(rmdir(at));
}

static int on_rename(const char *from, const char *to, unsigned flags) {
    TOLD("rename", from, 0);
    BELOW(one, from);
    BELOW(other, to);
    END((int)syscall(SYS_renameat2, AT_FDCWD, one, AT_FDCWD, other, flags));
}

static int on_link(const char *from, const char *to) {
    BELOW(one, from);
    BELOW(other, to);
    DONE(link(one, other));
}

static int on_chmod(const char *path, mode_t mode, struct fuse_file_info *info) {
    if (info) DONE(fchmod((int)info->fh, mode));
    BELOW(at, path);
    DONE(chmod(at, mode));
}

static int on_chown(const char *path, uid_t user, gid_t group, struct fuse_file_info *info) {
    if (info) DONE(fchown((int)info->fh, user, group));
    BELOW(at, path);
    DONE(lchown(at, user, group));
}

static int on_truncate(const char *path, off_t length, struct fuse_file_info *info) {
    if (info) DONE(ftruncate((int)info->fh, length));
    BELOW(at, path);
    DONE(truncate(at, length));
}

static int on_utimens(const char *path, const struct timespec times[2], struct fuse_file_info *info) {
    if (info) DONE(futimens((int)info->fh, times));
    BELOW(at, path);
    DONE(utimensat(AT_FDCWD, at, times, AT_SYMLINK_NOFOLLOW));
}

static void *on_init(struct fuse_conn_info *connection, struct fuse_config *config) {
    if (cached) {
        connection->want |= FUSE_CAP_WRITEBACK_CACHE;
        config->entry_timeout = config->attr_timeout = 0;
    }
    return NULL;
}

/* The kernel reads what it writes to, and knows where an appended byte goes. */
static int flags(const struct fuse_file_info *info) {
    if (!cached) return info->flags;
    int access = (info->flags & O_ACCMODE) == O_WRONLY ? O_RDWR : info->flags & O_ACCMODE;
    return (info->flags & ~(O_ACCMODE | O_APPEND)) | access;
}

static int opened(const char *path, int descriptor, struct fuse_file_info *info) {
    if (descriptor == -1) return -errno;
    /* The kernel would keep the length of a file that another client has replaced, as no client of NFS does. */
    info->direct_io = cached && !strstr(path, "/rank-");
    info->fh = (uint64_t)descriptor;
    return 0;
}

static int on_create(const char *path, mode_t mode, struct fuse_file_info *info) {
    TOLD("create", path, 0);
    BELOW(at, path);
    return opened(path, open(at, (flags(info) & ~O_NOFOLLOW) | O_CREAT | O_CLOEXEC, mode), info);
}

static int on_open(const char *path, struct fuse_file_info *info) {
    TOLD("open", path, 0);
    if (strstr(path, "/rank-")) told_of("open-image", path, 0);
    BELOW(at, path);
    return opened(path, open(at, flags(info) | O_CLOEXEC), info);
}

static int on_read(const char *path, char *bytes, size_t length, off_t from, struct fuse_file_info *info) {
    TOLD("read", path, from + (off_t)length - 1);
    ssize_t read = pread((int)info->fh, bytes, told.half ? (length + 1) / 2 : length, from);
    return read < 0 ? -errno : (int)read;
}

static int on_write(const char *path, const char *bytes, size_t length, off_t to, struct fuse_file_info *info) {
    TOLD("write", path, to + (off_t)length - 1);
    ssize_t written = pwrite((int)info->fh, bytes, told.half ? (length + 1) / 2 : length, to);
    return written < 0 ? -errno : told.after ? -told.after : (int)written;
}

/* At each close. */
static int on_flush(const char *path, struct fuse_file_info *info) {
    TOLD("flush", path, 0);
    END(close(dup((int)info->fh)));
}

/* After the last one. */
static int on_release(const char *path, struct fuse_file_info *info) {
    told_of("release", path, 0);
    DONE(close((int)info->fh));
}

static int on_fsync(const char *path, int data, struct fuse_file_info *info) {
    TOLD("fsync", path, 0);
    if (told.nothing) return 0;
    END(data ? fdatasync((int)info->fh) : fsync((int)info->fh));
}

static int on_flock(const char *path, struct fuse_file_info *info, int operation) {
    TOLD("flock", path, 0);
    END(flock((int)info->fh, operation));
}

static int on_opendir(const char *path, struct fuse_file_info *info) {
    TOLD("opendir", path, 0);
    BELOW(at, path);
    return opened(path, open(at, O_RDONLY | O_DIRECTORY | O_CLOEXEC), info);
}

static int on_readdir(const char *path, void *out, fuse_fill_dir_t fill, off_t from, struct fuse_file_info *info, enum fuse_readdir_flags flags) {
    (void)from, (void)info, (void)flags;
    TOLD("readdir", path, 0);
    BELOW(at, path);
    DIR *directory = opendir(at);
    if (!directory) return -errno;
    for (struct dirent *entry; (entry = readdir(directory));)
        if (fill(out, entry->d_name, NULL, 0, 0)) break;
    closedir(directory);
    return 0;
}

static int on_releasedir(const char *path, struct fuse_file_info *info) {
    told_of("releasedir", path, 0);
    DONE(close((int)info->fh));
}

static int on_fsyncdir(const char *path, int data, struct fuse_file_info *info) {
    (void)data;
    TOLD("fsyncdir", path, 0);
    END(fsync((int)info->fh));
}

static int on_statfs(const char *path, struct statvfs *about) {
    BELOW(at, path);
    DONE(statvfs(at, about));
}

static const struct fuse_operations operations = {
    .init = on_init, .getattr = on_getattr, .readlink = on_readlink, .symlink = on_symlink, .mkdir = on_mkdir, .unlink = on_unlink, .rmdir = on_rmdir,
    .rename = on_rename, .link = on_link, .chmod = on_chmod, .chown = on_chown, .truncate = on_truncate, .utimens = on_utimens,
    .create = on_create, .open = on_open, .read = on_read, .write = on_write, .flush = on_flush, .release = on_release, .fsync = on_fsync,
    .flock = on_flock, .opendir = on_opendir, .readdir = on_readdir, .releasedir = on_releasedir, .fsyncdir = on_fsyncdir, .statfs = on_statfs,
};

int main(int count, char **words) {
    if (count != 4 && count != 5) return 2;
    lower = words[1], settings = words[2], cached = count == 5;
    umask(0);
    char *arguments[] = {words[0], words[3], "-f", NULL};
    return fuse_main(3, arguments, &operations, NULL);
}
