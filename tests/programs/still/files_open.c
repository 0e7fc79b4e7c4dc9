/* Open files keep position, mode and sharing: appended, read half-way, duplicated, sparse, unlinked, hundreds of them.
 * trial: ranks=2 */
#include "../common.h"
#include <sys/stat.h>

#define MANY 200

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    char path[PATH_MAX], text[256], many_path[PATH_MAX];
    struct stat status;
    trial_own_file(path, sizeof path, "log");
    int append = open(path, O_WRONLY | O_CREAT | O_APPEND | O_TRUNC, 0640);
    CHECK(write(append, "one\ntwo\n", 8) == 8, "write");

    char data_path[PATH_MAX];
    trial_own_file(data_path, sizeof data_path, "data");
    int data = open(data_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), twin = dup(data), high = dup2(data, 345);
    CHECK(write(data, "0123456789", 10) == 10 && lseek(data, 4, SEEK_SET) == 4, "position");
    int second = open(data_path, O_RDONLY);
    CHECK(lseek(second, 7, SEEK_SET) == 7, "position");

    char gone_path[PATH_MAX];
    trial_own_file(gone_path, sizeof gone_path, "gone");
    int gone = open(gone_path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(write(gone, "unlinked but open", 17) == 17 && lseek(gone, 9, SEEK_SET) == 9, "write");
    unlink(gone_path);

    FILE *stream = fopen("/proc/self/status", "r");
    FILE *buffered;
    char buffered_path[PATH_MAX];
    trial_own_file(buffered_path, sizeof buffered_path, "buffered");
    buffered = fopen(buffered_path, "w+");
    fprintf(buffered, "in the buffer of the library\n");

    int directory = open(".", O_RDONLY | O_DIRECTORY), null = open("/dev/null", O_RDWR), zero = open("/dev/zero", O_RDONLY);
    trial_own_file(many_path, sizeof many_path, "many");
    int many[MANY];
    for (int i = 0; i < MANY; i++) {
        many[i] = open(many_path, O_RDWR | O_CREAT, 0600);
        if (i % 3 == 1) close(many[i]);
        else if (i % 3 == 2) CHECK(lseek(many[i], i, SEEK_SET) == i, "position");
    }
    trial_hold();
    CHECK(write(append, "three\n", 6) == 6, "append: %s", strerror(errno));
    int reader = open(path, O_RDONLY);
    ssize_t bytes = read(reader, text, sizeof text);
    CHECK(bytes == 14 && memcmp(text, "one\ntwo\nthree\n", 14) == 0, "the log holds %zd bytes: %.*s", bytes, (int)bytes, text);
    CHECK(fcntl(append, F_GETFL) & O_APPEND, "no longer appending");
    fstat(append, &status);
    CHECK((status.st_mode & 0777) == 0640 || (status.st_mode & 0777) == (0640 & ~umask(umask(0))), "mode %o", status.st_mode);

    CHECK(read(data, text, 2) == 2 && memcmp(text, "45", 2) == 0, "read from the position: %.2s", text);
    CHECK(lseek(twin, 0, SEEK_CUR) == 6 && lseek(high, 0, SEEK_CUR) == 6, "duplicates do not share the position");
    CHECK(lseek(second, 0, SEEK_CUR) == 7, "the position of another opening is %ld", (long)lseek(second, 0, SEEK_CUR));
    CHECK(fcntl(data, F_GETFD) == FD_CLOEXEC && fcntl(twin, F_GETFD) == 0 && high == 345, "descriptor flags");
    CHECK(write(twin, "xy", 2) == 2 && pread(second, text, 10, 0) == 10 && memcmp(text, "012345xy89", 10) == 0, "%.10s", text);

    CHECK(read(gone, text, 8) == 8 && memcmp(text, "but open", 8) == 0, "unlinked: '%.8s'", text);
    CHECK(access(gone_path, F_OK) != 0, "the unlinked file is back");
    CHECK(pwrite(gone, "U", 1, 0) == 1 && pread(gone, text, 8, 0) == 8 && memcmp(text, "Unlinked", 8) == 0, "unlinked");

    CHECK(stream && fgets(text, sizeof text, stream) && strncmp(text, "Name:", 5) == 0, "/proc/self/status");
    fprintf(buffered, "and behind it\n");
    fflush(buffered);
    rewind(buffered);
    CHECK(fgets(text, sizeof text, buffered) && strcmp(text, "in the buffer of the library\n") == 0, "line '%s'", text);
    CHECK(fgets(text, sizeof text, buffered) && strcmp(text, "and behind it\n") == 0, "line '%s'", text);

    CHECK(openat(directory, ".", O_RDONLY | O_DIRECTORY) >= 0, "directory: %s", strerror(errno));
    CHECK(write(null, "x", 1) == 1 && read(null, text, 1) == 0, "/dev/null");
    CHECK(read(zero, text, 1) == 1 && text[0] == 0, "/dev/zero");
    for (int i = 0; i < MANY; i++)
        if (i % 3 == 2) CHECK(lseek(many[i], 0, SEEK_CUR) == i, "descriptor %d at %ld", many[i], (long)lseek(many[i], 0, SEEK_CUR));
    close(many[0]);
    int lowest = open("/dev/null", O_RDONLY);
    CHECK(lowest <= many[0], "a new descriptor is %d, %d is free", lowest, many[0]);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
