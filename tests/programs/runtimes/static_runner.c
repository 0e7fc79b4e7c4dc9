/* A statically linked program that runs another one in its place, as valgrind's tools do. Linked with -static. */
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc > 1) execv(argv[1], argv + 1);
    return 127;
}
