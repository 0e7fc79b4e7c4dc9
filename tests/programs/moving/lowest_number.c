/* The lowest descriptor number that is free is what `open` gives and what `dup2` takes, whatever is opened for a checkpoint meanwhile.
 * trial: ranks=1 */
#include "../common.h"

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    int lowest = open("/dev/null", O_RDWR | O_CLOEXEC);
    close(lowest);
    trial_ready();
    do {
        for (int i = 0; i < 200; i++) {
            int doubled = dup2(0, lowest);
            CHECK(doubled == lowest, "dup2 onto %d gives %d: %s", lowest, doubled, strerror(errno));
            CHECK(doubled < 0 || close(doubled) == 0, "close %d: %s", doubled, strerror(errno));
            int opened = open("/dev/null", O_RDWR | O_CLOEXEC);
            CHECK(opened == lowest, "open gives %d and not %d", opened, lowest);
            close(opened);
        }
    } while (!trial_go());
    return trial_end();
}
