/* The limit on the stack is the application's, whatever it is: what it is told of it, how deep it may go, and what its helpers have.
 * trial: ranks=2 */
#include "../common.h"
#include <sys/resource.h>

/* Leaves a mark in every page of a stack of so many bytes, and sums the marks on the way back. */
__attribute__((noinline)) static unsigned long deep(size_t bytes, unsigned long mark) {
    volatile unsigned char page[4096];
    page[mark % sizeof page] = (unsigned char)mark;
    if (bytes < 2 * sizeof page) return page[mark % sizeof page];
    unsigned long below = deep(bytes - sizeof page, mark + 1);
    return below + page[mark % sizeof page];
}

static void as_said(char *text, size_t bytes) {
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_STACK, &limit) == 0, "errno %d", errno);
    if (limit.rlim_cur == RLIM_INFINITY)
        snprintf(text, bytes, "unlimited");
    else
        snprintf(text, bytes, "%llu", (unsigned long long)limit.rlim_cur / 1024);
}

/* Two programs, one started by the other. */
static void as_a_helper_says(char *text, size_t bytes) {
    text[0] = 0;
    FILE *helper = popen("sh -c 'ulimit -s' | cat", "r");
    CHECK(helper != NULL, "errno %d", errno);
    if (!helper) return;
    CHECK(fgets(text, (int)bytes, helper) != NULL, "%s", "the helper says nothing");
    int status = pclose(helper);
    CHECK(status == 0, "the helper's status is %#x", status);
    text[strcspn(text, "\n")] = 0;
}

static void look(const char *first) {
    char said[64], helper[64];
    as_said(said, sizeof said);
    as_a_helper_says(helper, sizeof helper);
    CHECK(!strcmp(said, first), "the limit is %s and was %s", said, first);
    CHECK(!strcmp(helper, first), "a helper's limit is %s, this program's is %s", helper, first);
    struct rlimit limit;
    getrlimit(RLIMIT_STACK, &limit);
    size_t most = 64u << 20, half = limit.rlim_cur / 2;
    unsigned long sum = 0, bytes = half < most ? half : most;
    for (unsigned long left = bytes, mark = 1;; left -= 4096, mark++) {
        sum += (unsigned char)mark;
        if (left < 8192) break;
    }
    unsigned long found = deep(bytes, 1);
    CHECK(found == sum, "%lu for %lu", found, sum);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    char first[64];
    const char *expected = getenv("TRIAL_STACK");
    as_said(first, sizeof first);
    CHECK(!expected || !strcmp(first, expected), "the limit is %s, and %s was set", first, expected);
    look(first);
    trial_hold();
    look(first);
    return trial_finish();
}
