/* A token with a growing number goes round until SIGUSR2 comes, past a second thread, pipes and a communicator of its own: something
 * of every kind that a checkpoint carries. It waits for no file, so that copies of one checkpoint directory are restarted side by
 * side.
 * trial: ranks=2 flags=-pthread */
#include "../common.h"
#include <pthread.h>
#include <signal.h>

#define LARGE 5000
#define MEGABYTES 2

static volatile sig_atomic_t told;
static _Atomic long beats;

static void tell(int signal) {
    (void)signal;
    told = 1;
}

static void *beat(void *unused) {
    while (!told) usleep(1000), beats++;
    return unused;
}

int main(int argc, char **argv) {
    trial_start_threads(&argc, &argv, MPI_THREAD_FUNNELED);
    signal(SIGUSR2, tell);
    pthread_t other;
    pthread_create(&other, NULL, beat, NULL);
    int ends[2];
    CHECK(pipe(ends) == 0 && write(ends[1], "kept", 4) == 4, "a pipe: %s", strerror(errno));
    MPI_Comm own;
    MUST(MPI_Comm_dup(MPI_COMM_WORLD, &own));
    size_t words = MEGABYTES << 17;
    uint64_t *kept = malloc(words * sizeof *kept), *token = malloc(LARGE * sizeof *token);
    for (size_t i = 0; i < words; i++) kept[i] = trial_mix(i + (size_t)trial_rank);
    int next = (trial_rank + 1) % trial_size, previous = (trial_rank + trial_size - 1) % trial_size, goes_on = 1;
    for (uint64_t lap = 0; goes_on && !trial_failures; lap++) {
        if (lap == 20) trial_ready();
        usleep(2000);
        int mine = trial_rank == 0 && told;
        token[0] = lap, token[1] = (uint64_t)mine;
        for (int i = 2; i < LARGE; i++) token[i] = trial_mix(lap + (uint64_t)i);
        MUST(MPI_Sendrecv_replace(token, LARGE, MPI_UINT64_T, next, 1, previous, 1, own, MPI_STATUS_IGNORE));
        CHECK(token[0] == lap, "lap %d: token %d", (int)lap, (int)token[0]);
        for (int i = 2; i < LARGE; i += 97) CHECK(token[i] == trial_mix(lap + (uint64_t)i), "lap %d: element %d", (int)lap, i);
        MUST(MPI_Allreduce(&mine, &goes_on, 1, MPI_INT, MPI_MAX, own));
        goes_on = !goes_on;
    }
    told = 1;
    pthread_join(other, NULL);
    for (size_t i = 0; i < words; i++) CHECK(kept[i] == trial_mix(i + (size_t)trial_rank), "word %d", (int)i);
    char text[4];
    CHECK(read(ends[0], text, 4) == 4 && memcmp(text, "kept", 4) == 0, "what was in the pipe");
    MUST(MPI_Comm_free(&own));
    return trial_finish();
}
