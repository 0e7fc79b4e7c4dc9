/* Preloaded: forcing job.json to disk takes the coordinator as long as there is a file "slow" in TRIAL_DIR; "held" says that
 * it waits. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int forces_job_file(int descriptor) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (strcmp(program_invocation_short_name, "stillpoint") || length < 0) return 0;
    path[length] = 0;
    return strstr(path, ".job.json") != NULL;
}

int fsync(int descriptor) {
    const char *directory = getenv("TRIAL_DIR");
    if (directory && forces_job_file(descriptor)) {
        char slow[4096], held[4096];
        snprintf(slow, sizeof slow, "%s/slow", directory);
        snprintf(held, sizeof held, "%s/held", directory);
        while (access(slow, F_OK) == 0) {
            int file = open(held, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
            if (file >= 0) close(file);
            usleep(10000);
        }
    }
    return (int)syscall(SYS_fsync, descriptor);
}
