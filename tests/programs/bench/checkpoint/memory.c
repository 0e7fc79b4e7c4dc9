/* Has as many megabytes of random bytes as its first argument says, and does with them what the second one says:
 *
 *   hold      nothing, but for `answer.<rank>` where it sees `ask`
 *   rest      the same, and looks for it seldom: many such ranks leave the cores to others
 *   sweep     adds to every word of a sixteenth of it in turn; how long each lap took goes to `laps.<rank>`
 *   triad     a stream-like loop over three thirds of it; laps as well
 *   touch     writes to a twentieth of its pages each second, a few each millisecond; these are its laps
 *   rewrite   where it sees `ask`: writes to a tenth of the pages, those of every second one what was there, 64 other bytes into the rest
 *
 * until it sees `go`. */
#include "../../common.h"

enum { PAGE = 4096 };

static double since_1970(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

static int is_there(const char *name) {
    char path[PATH_MAX];
    trial_path(path, sizeof path, name);
    return access(path, F_OK) == 0;
}

static void make(const char *name) {
    char path[PATH_MAX];
    trial_own_file(path, sizeof path, name);
    int file = open(path, O_CREAT | O_WRONLY, 0600);
    CHECK(file >= 0, "%s: %s", path, strerror(errno));
    close(file);
}

/* Says that it has been asked, and waits until nobody asks any more. */
static void answer(void) {
    make("answer");
    while (is_there("ask")) usleep(1000);
}

static void lap(int file, double began) {
    char line[64];
    double now = since_1970();
    int length = snprintf(line, sizeof line, "%.6f %.6f\n", now, now - began);
    CHECK(write(file, line, length) == length, "%s", strerror(errno));
}

static void sweep(uint64_t *memory, size_t words, size_t lap_number) {
    size_t part = words / 16, from = lap_number % 16 * part;
    for (size_t word = from; word < from + part; word++) memory[word] += word;
}

static void triad(double *memory, size_t words) {
    size_t third = words / 3;
    double *a = memory, *b = a + third, *c = b + third;
    for (size_t i = 0; i < third; i++) a[i] = b[i] + 0.5 * c[i];
}

/* As many pages as belong to the time since the last lap. */
static void touch(volatile uint64_t *memory, size_t words, double seconds) {
    const size_t in_page = PAGE / sizeof *memory, pages = words / in_page;
    static size_t page;
    for (size_t left = pages * (seconds < 1 ? seconds : 1) / 20; left > 0; left--, page = (page + 1) % pages) memory[page * in_page]++;
}

static void rewrite(volatile uint64_t *memory, size_t words, uint64_t round) {
    const size_t in_page = PAGE / sizeof *memory;
    for (size_t page = 0; page < words / in_page; page++) {
        if (page % 10) continue;
        volatile uint64_t *at = memory + page * in_page;
        for (size_t word = 0; word < 8; word++) at[word] = page % 20 ? at[word] : trial_mix(round * 8 + word);
    }
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    CHECK(argc > 2, "%s", "how much memory, and what for?");
    size_t words = argc > 2 ? ((size_t)atol(argv[1]) << 20) / sizeof(uint64_t) : 0;
    const char *what = argc > 2 ? argv[2] : "hold";
    uint64_t *memory = aligned_alloc(PAGE, words * sizeof *memory + PAGE);
    CHECK(memory != NULL, "%s", strerror(errno));
    int is_triad = strcmp(what, "triad") == 0, is_sweep = strcmp(what, "sweep") == 0;
    int is_touch = strcmp(what, "touch") == 0, is_rest = strcmp(what, "rest") == 0;
    double touched = since_1970();
    for (size_t word = 0; word < words; word++) {
        memory[word] = trial_mix(word + (size_t)trial_rank * words);
        if (is_triad) ((double *)memory)[word] = (double)word;
    }
    char path[PATH_MAX];
    trial_own_file(path, sizeof path, "laps");
    int laps = open(path, O_CREAT | O_WRONLY | O_APPEND, 0600);
    CHECK(laps >= 0, "%s: %s", path, strerror(errno));
    trial_ready();
    for (uint64_t round = 0; !is_there("go"); round++) {
        if (is_triad || is_sweep) {
            double began = since_1970();
            if (is_triad) triad((double *)memory, words);
            if (is_sweep) sweep(memory, words, round);
            lap(laps, began);
            continue;
        }
        usleep(is_rest ? 50000 : 1000);
        if (is_touch) {
            double now = since_1970();
            touch(memory, words, now - touched);
            lap(laps, touched);
            touched = now;
        }
        if (!is_there("ask")) continue;
        if (strcmp(what, "rewrite") == 0) rewrite(memory, words, round);
        answer();
    }
    return trial_finish();
}
