/* Preloaded: forcing job.json to disk takes the coordinator as long as there is a file "slow" in TRIAL_DIR; "held" says that
 * it waits. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Where a link leads to; empty where there is none. */
static const char *leads_to(const char *link, char *path, size_t bytes) {
    ssize_t length = readlink(link, path, bytes - 1);
    path[length < 0 ? 0 : length] = 0;
    return path;
}

static int forces_job_file(int descriptor) {
    static const char command[] = "/stillpoint";
    char link[64], path[4096];
    const char *program = leads_to("/proc/self/exe", path, sizeof path);
    size_t length = strlen(program), least = sizeof command - 1;
    if (length < least || strcmp(program + length - least, command)) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    return strstr(leads_to(link, path, sizeof path), ".job.json") != NULL;
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
