/* Ranks of very different sizes: each is told its megabytes, which nothing compresses, and checks every word of them
 * before it ends. All the time they agree on whether to go on.
 * trial: ranks=2 */
#include "../common.h"

static void fill(uint64_t *words, size_t count) {
    for (size_t i = 0; i < count; i++) words[i] = trial_mix(i * 1000003 + (uint64_t)trial_rank);
}

static size_t wrong(const uint64_t *words, size_t count) {
    size_t found = 0;
    for (size_t i = 0; i < count; i++) found += words[i] != trial_mix(i * 1000003 + (uint64_t)trial_rank);
    return found;
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    const char *megabytes = argc > trial_rank + 1 ? argv[trial_rank + 1] : "1";
    size_t count = (size_t)atol(megabytes) * 1000000 / sizeof(uint64_t);
    uint64_t *words = malloc(count * sizeof *words);
    CHECK(words != NULL, "no memory");
    fill(words, count);
    trial_ready();
    uint64_t rounds = 0, all = 0;
    int go = 0;
    while (!go) {
        usleep(2000);
        int mine = trial_go();
        MUST(MPI_Allreduce(&mine, &go, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
        rounds++;
    }
    MUST(MPI_Allreduce(&rounds, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD));
    CHECK(all == rounds * (uint64_t)trial_size, "the ranks counted different rounds");
    size_t lost = wrong(words, count);
    CHECK(lost == 0, "%zu of %zu words are not as they were", lost, count);
    return trial_finish();
}
