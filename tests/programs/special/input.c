/* Reads numbered lines from the standard input: so many before a checkpoint, and the others after it. All ranks say something before and after.
 * trial: ranks=1,2 */
#include "../common.h"
#include <sys/stat.h>

static long lines = 0;

/* One line, which has to be the one behind the one before; 0 at the end. */
static int line(void) {
    char text[64];
    if (!fgets(text, sizeof text, stdin)) return 0;
    lines++;
    CHECK(atol(text) == lines, "line %ld is %s", lines, text);
    return 1;
}

/* What descriptor 0 is, as far as a program looks at it. */
static long kind(void) {
    struct stat about;
    if (fstat(0, &about)) return -errno;
    if (S_ISCHR(about.st_mode)) return S_IFCHR; /* a terminal may be none in the next launch */
    int bytes = fcntl(0, F_GETPIPE_SZ), mode = fcntl(0, F_GETFL);
    return (long)(about.st_mode & S_IFMT) << 40 | (long)(bytes > 0 ? bytes : 0) << 8 | (mode & O_ACCMODE);
}

static void say(const char *when) {
    fprintf(stdout, "%s out %d\n", when, trial_rank);
    fflush(stdout);
    fprintf(stderr, "%s err %d\n", when, trial_rank);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    long first = argc > 1 ? atol(argv[1]) : 0, all = argc > 2 ? atol(argv[2]) : 0;
    long before = kind();
    if (trial_rank == 0)
        while (lines < first && line());
    say("before");
    trial_hold();
    CHECK(kind() == before, "descriptor 0 was %lx and is %lx", before, kind());
    if (trial_rank == 0) {
        while (line());
        CHECK(lines == all, "%ld lines of %ld", lines, all);
    }
    say("after");
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
