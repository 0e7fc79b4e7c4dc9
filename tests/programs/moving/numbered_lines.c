/* Every rank appends numbered lines to a file of its own, buffered and unbuffered; none is missing or there twice.
 * trial: ranks=2 */
#include "../moving.h"

static void check_lines(const char *path, uint64_t count, const char *which) {
    FILE *file = fopen(path, "r");
    CHECK(file != NULL, "cannot open %s: %s", path, strerror(errno));
    if (!file) return;
    char text[64];
    uint64_t line = 0;
    while (fgets(text, sizeof text, file)) {
        CHECK(strtoull(text, NULL, 10) == line && strstr(text, " end\n"), "%s: line %d is '%s'", which, (int)line, text);
        if (trial_failures > 3) break;
        line++;
    }
    CHECK(line == count, "%s: %d lines, %d written", which, (int)line, (int)count);
    fclose(file);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    char path[2][PATH_MAX], text[64];
    trial_own_file(path[0], PATH_MAX, "buffered");
    trial_own_file(path[1], PATH_MAX, "appended");
    FILE *buffered = fopen(path[0], "w");
    int appended = open(path[1], O_WRONLY | O_CREAT | O_APPEND | O_TRUNC, 0600);
    uint64_t round = 0;
    for (; moving_agree(round, MPI_COMM_WORLD); round++) {
        fprintf(buffered, "%llu end\n", (unsigned long long)round);
        int length = snprintf(text, sizeof text, "%llu end\n", (unsigned long long)round);
        CHECK(write(appended, text, length) == length, "write: %s", strerror(errno));
        if (round % 100 == 0) fflush(buffered);
    }
    fclose(buffered);
    close(appended);
    check_lines(path[0], round, "buffered");
    check_lines(path[1], round, "appended");
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
