/* Writes to its memory until it is let go, and then handles the faults of that memory itself: nobody else may have them. With an argument it
 * says so by a file of that name, and writes on until that has gone.
 * trial: ranks=1 */
#include "../common.h"
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { BYTES = 16 * 4096 };

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED, "%s", strerror(errno));
    memset(memory, 1, BYTES);
    trial_ready();
    while (!trial_go()) {
        for (int page = 0; page < 16; page++) memory[4096 * page]++;
        usleep(1000);
    }
    int faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
    CHECK(faults >= 0, "userfaultfd: %s", strerror(errno));
    struct uffdio_api api = {.api = UFFD_API, .features = 0};
    CHECK(ioctl(faults, UFFDIO_API, &api) == 0, "%s", strerror(errno));
    struct uffdio_register all = {.range = {(unsigned long)memory, BYTES}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    CHECK(ioctl(faults, UFFDIO_REGISTER, &all) == 0, "registering: %s", strerror(errno));
    close(faults);
    char path[PATH_MAX];
    trial_path(path, sizeof path, argc > 1 ? argv[1] : "");
    if (argc > 1) fclose(fopen(path, "w"));
    do {
        for (int page = 0; page < 16; page++) memory[4096 * page]++;
        usleep(1000);
    } while (argc > 1 && access(path, F_OK) == 0);
    return trial_finish();
}
