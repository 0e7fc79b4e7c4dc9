/* What system calls answer to bad pointers they answer after a restart, where more of them are trapped.
 * trial: ranks=1 */
#include "../bad_pointers.h"
#include "../common.h"

static int before[4096], count, again;

static void tell(const char *name, int argument, const char *what, int error) {
    if (!again) before[count] = error;
    else CHECK(before[count] == error, "%s, argument %d: %s: %d and then %d", name, argument, what, before[count], error);
    count++;
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    bad_pointers(tell);
    trial_hold();
    again = 1, count = 0;
    bad_pointers(tell);
    return trial_finish();
}
