/* Every trapped system call answers bad pointers as the kernel does.
 * trial: ranks=1 */
#include "../bad_pointers.h"
#include "../same.h"

static void tell(const char *name, int argument, const char *what, int error) {
    printf("%s, argument %d: %s: %s\n", name, argument, what, error ? strerrorname_np(error) : "fine");
}

int main(int argc, char **argv) {
    begin(argc, argv);
    bad_pointers(tell);
    MPI_Finalize();
    return 0;
}
