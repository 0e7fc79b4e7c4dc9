/* Files: how they were opened, where one stands in them, what becomes of them meanwhile. */
#include "feature.h"
#include <dirent.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>

static int position;
CARRIED(position_in_a_file)
SET(position_in_a_file) {
    position = own_file("position", 0);
    DOES(lseek(position, 3, SEEK_SET));
}
AFTER(position_in_a_file) {
    reads(position, "3456");
    remove_file("position");
}

static int appended;
CARRIED(file_that_is_appended_to)
SET(file_that_is_appended_to) { appended = own_file("appended", O_APPEND); }
AFTER(file_that_is_appended_to) {
    DOES(lseek(appended, 0, SEEK_SET));
    DOES(write(appended, "end", 3));
    CHECK(lseek(appended, 0, SEEK_END) == 13, "%ld", (long)lseek(appended, 0, SEEK_END));
    CHECK(fcntl(appended, F_GETFL) & O_APPEND, "flag");
    remove_file("appended");
}

static int unlinked;
CARRIED(file_that_was_removed)
SET(file_that_was_removed) {
    unlinked = own_file("unlinked", 0);
    remove_file("unlinked");
}
AFTER(file_that_was_removed) {
    struct stat about;
    DOES(fstat(unlinked, &about));
    CHECK(about.st_nlink == 0 && about.st_size == 10, "%d links, %d bytes", (int)about.st_nlink, (int)about.st_size);
    DOES(lseek(unlinked, 0, SEEK_SET));
    reads(unlinked, "0123456789");
}

static FILE *temporary;
CARRIED(temporary_file)
SET(temporary_file) {
    temporary = tmpfile();
    CHECK(temporary && fputs("buffered", temporary) >= 0, "%s", strerror(errno));
}
AFTER(temporary_file) {
    char text[16] = "";
    rewind(temporary);
    CHECK(fgets(text, sizeof text, temporary) && strcmp(text, "buffered") == 0, "'%s'", text);
}

static int nameless;
CARRIED(file_without_a_name)
SET(file_without_a_name) {
    const char *directory = getenv("TRIAL_DIR");
    DOES(nameless = open(directory ? directory : ".", O_TMPFILE | O_RDWR, 0600));
    DOES(write(nameless, "nameless", 8));
}
AFTER(file_without_a_name) {
    DOES(lseek(nameless, 0, SEEK_SET));
    reads(nameless, "nameless");
}

static FILE *stream;
CARRIED(stream_with_a_full_buffer)
SET(stream_with_a_full_buffer) {
    char path[PATH_MAX];
    trial_own_file(path, sizeof path, "stream");
    stream = fopen(path, "w+");
    CHECK(stream && fputs("not written yet", stream) >= 0, "%s", strerror(errno));
}
AFTER(stream_with_a_full_buffer) {
    char text[32] = "";
    CHECK(fputs(", now it is", stream) >= 0 && fseek(stream, 0, SEEK_SET) == 0, "%s", strerror(errno));
    CHECK(fgets(text, sizeof text, stream) && strcmp(text, "not written yet, now it is") == 0, "'%s'", text);
    remove_file("stream");
}

static DIR *listing;
static char listed[8][256];
static int listed_before;
CARRIED(directory_half_read)
SET(directory_half_read) {
    char path[PATH_MAX], file[PATH_MAX + 16];
    trial_own_file(path, sizeof path, "listing");
    DOES(mkdir(path, 0700));
    for (int i = 0; i < 6; i++) {
        snprintf(file, sizeof file, "%s/%d", path, i);
        close(open(file, O_CREAT | O_WRONLY, 0600));
    }
    listing = opendir(path);
    CHECK(listing != NULL, "%s", strerror(errno));
    for (; listed_before < 4; listed_before++) {
        const struct dirent *entry = readdir(listing);
        CHECK(entry != NULL, "it ends too soon");
        if (entry) snprintf(listed[listed_before], 256, "%s", entry->d_name);
    }
}
AFTER(directory_half_read) {
    int count = listed_before;
    for (const struct dirent *entry; (entry = readdir(listing)); count++)
        for (int i = 0; i < listed_before; i++) CHECK(strcmp(entry->d_name, listed[i]) != 0, "%s twice", entry->d_name);
    CHECK(count == 8, "%d entries", count);
    rewinddir(listing);
    count = 0;
    while (readdir(listing)) count++;
    CHECK(count == 8, "%d entries from the beginning", count);
    char path[PATH_MAX], file[PATH_MAX + 16];
    trial_own_file(path, sizeof path, "listing");
    for (int i = 0; i < 6; i++) {
        snprintf(file, sizeof file, "%s/%d", path, i);
        unlink(file);
    }
    rmdir(path);
}

static int only_a_path;
CARRIED(path_descriptor)
SET(path_descriptor) {
    close(own_file("only_path", 0));
    char path[PATH_MAX];
    trial_own_file(path, sizeof path, "only_path");
    DOES(only_a_path = open(path, O_PATH | O_CLOEXEC));
}
AFTER(path_descriptor) {
    struct stat about;
    char byte;
    DOES(fstat(only_a_path, &about));
    CHECK(about.st_size == 10, "%d", (int)about.st_size);
    CHECK(read(only_a_path, &byte, 1) == -1 && errno == EBADF, "it can be read");
    remove_file("only_path");
}

static int sparse;
CARRIED(file_with_a_hole)
SET(file_with_a_hole) {
    sparse = own_file("sparse", 0);
    DOES(pwrite(sparse, "far", 3, 1 << 20));
}
AFTER(file_with_a_hole) {
    struct stat about;
    DOES(fstat(sparse, &about));
    CHECK(about.st_size == (1 << 20) + 3, "%ld", (long)about.st_size);
    char text[4] = "";
    CHECK(pread(sparse, text, 3, 1 << 20) == 3 && strcmp(text, "far") == 0, "'%s'", text);
    remove_file("sparse");
}

static int locked_whole;
/* Whether another process could take a POSIX lock. */
static int free_for_others(const char *name, short kind) {
    char path[PATH_MAX];
    trial_own_file(path, sizeof path, name);
    pid_t child = fork();
    if (child == 0) {
        struct flock lock = {.l_type = kind, .l_whence = SEEK_SET};
        int fd = open(path, O_RDWR);
        _exit(fcntl(fd, F_SETLK, &lock) == 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}
CARRIED(lock_of_the_process)
SET(lock_of_the_process) {
    locked_whole = own_file("lock_whole", 0);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    DOES(fcntl(locked_whole, F_SETLK, &lock));
}
AFTER(lock_of_the_process) {
    CHECK(!free_for_others("lock_whole", F_RDLCK), "others can lock it");
    remove_file("lock_whole");
}

static int locked_part;
CARRIED(shared_lock_of_the_process)
SET(shared_lock_of_the_process) {
    locked_part = own_file("lock_part", 0);
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 2, .l_len = 3};
    DOES(fcntl(locked_part, F_SETLK, &lock));
}
AFTER(shared_lock_of_the_process) {
    CHECK(free_for_others("lock_part", F_RDLCK), "others cannot share it");
    CHECK(!free_for_others("lock_part", F_WRLCK), "others can have it alone");
    remove_file("lock_part");
}

static int locked_open;
CARRIED(lock_of_an_open_file)
SET(lock_of_an_open_file) {
    locked_open = own_file("lock_open", 0);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 5};
    DOES(fcntl(locked_open, F_OFD_SETLK, &lock));
}
AFTER(lock_of_an_open_file) {
    char path[PATH_MAX];
    trial_own_file(path, sizeof path, "lock_open");
    int other = open(path, O_RDWR);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 5};
    CHECK(fcntl(other, F_OFD_SETLK, &lock) == -1 && errno == EAGAIN, "it is not locked");
    close(other);
    remove_file("lock_open");
}

static int locked_flock;
CARRIED(lock_by_flock)
SET(lock_by_flock) {
    locked_flock = own_file("lock_flock", 0);
    DOES(flock(locked_flock, LOCK_EX));
}
AFTER(lock_by_flock) {
    char path[PATH_MAX];
    trial_own_file(path, sizeof path, "lock_flock");
    int other = open(path, O_RDWR);
    CHECK(flock(other, LOCK_EX | LOCK_NB) == -1 && errno == EWOULDBLOCK, "it is not locked");
    close(other);
    remove_file("lock_flock");
}

static int fifo;
REFUSED("open-pipe", fifo_open_on_both_sides)
SET(fifo_open_on_both_sides) {
    char path[PATH_MAX];
    trial_own_file(path, sizeof path, "fifo");
    DOES(mkfifo(path, 0600));
    DOES(fifo = open(path, O_RDWR));
}
AFTER(fifo_open_on_both_sides) {
    DOES(write(fifo, "through", 7));
    reads(fifo, "through");
    remove_file("fifo");
}

static int processes_files;
CARRIED(directory_of_the_process)
SET(directory_of_the_process) { DOES(processes_files = open("/proc/self/fd", O_RDONLY | O_DIRECTORY)); }
AFTER(directory_of_the_process) {
    char name[16], target[64];
    snprintf(name, sizeof name, "%d", processes_files);
    CHECK(readlinkat(processes_files, name, target, sizeof target) > 0, "%s", strerror(errno));
}

static int status_file;
CARRIED(status_of_the_process)
SET(status_of_the_process) { DOES(status_file = open("/proc/self/status", O_RDONLY)); }
AFTER(status_of_the_process) {
    char text[4096] = "", *line;
    DOES(pread(status_file, text, sizeof text - 1, 0));
    line = strstr(text, "\nTgid:");
    CHECK(line != NULL, "no Tgid in it");
}

static void *executable_image;
CARRIED(own_executable_mapped)
SET(own_executable_mapped) {
    int fd = open("/proc/self/exe", O_RDONLY);
    CHECK(fd >= 0, "%s", strerror(errno));
    executable_image = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    CHECK(executable_image != MAP_FAILED, "%s", strerror(errno));
    close(fd);
}
AFTER(own_executable_mapped) { CHECK(memcmp(executable_image, "\177ELF", 4) == 0, "no executable"); }

static int renamed;
CARRIED(file_that_was_renamed)
SET(file_that_was_renamed) {
    char from[PATH_MAX], to[PATH_MAX];
    renamed = own_file("renamed_from", 0);
    trial_own_file(from, sizeof from, "renamed_from");
    trial_own_file(to, sizeof to, "renamed_to");
    DOES(rename(from, to));
}
AFTER(file_that_was_renamed) {
    DOES(pwrite(renamed, "x", 1, 0));
    char path[PATH_MAX], byte = 0;
    trial_own_file(path, sizeof path, "renamed_to");
    int fd = open(path, O_RDONLY);
    CHECK(read(fd, &byte, 1) == 1 && byte == 'x', "it is another file");
    close(fd);
    remove_file("renamed_to");
}

static int opened_twice[2];
CARRIED(file_opened_twice)
SET(file_opened_twice) {
    opened_twice[0] = own_file("twice", 0);
    char path[PATH_MAX];
    trial_own_file(path, sizeof path, "twice");
    DOES(opened_twice[1] = open(path, O_RDONLY));
    DOES(lseek(opened_twice[0], 8, SEEK_SET));
    DOES(lseek(opened_twice[1], 1, SEEK_SET));
}
AFTER(file_opened_twice) {
    reads(opened_twice[0], "89");
    reads(opened_twice[1], "12");
    CHECK(write(opened_twice[1], "x", 1) == -1 && errno == EBADF, "it can be written");
    remove_file("twice");
}
