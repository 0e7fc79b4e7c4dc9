/* ThreadSanitizer, with an address layout of its own, sees no race where there is none, and one where there is, after a restart too.
 * trial: ranks=2 flags=-fsanitize=thread,-pthread */
#include "../common.h"
#include <pthread.h>

const char *__tsan_default_options(void) { return "exitcode=0:log_path=/dev/null"; }

static volatile int reports;
void __tsan_on_report(void *report) {
    (void)report;
    reports++;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int phase;
static long guarded, bare;

static void wait_for(int wanted) {
    pthread_mutex_lock(&lock);
    while (phase < wanted) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void advance(void) {
    pthread_mutex_lock(&lock);
    phase++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void *work(void *argument) {
    (void)argument;
    for (int wanted = 1; wanted <= 2; wanted++) {
        wait_for(wanted);
        for (int i = 0; i < 1000; i++) {
            pthread_mutex_lock(&lock);
            guarded++;
            pthread_mutex_unlock(&lock);
        }
    }
    return NULL;
}

static void *race(void *argument) {
    (void)argument;
    for (int i = 0; i < 1000; i++) bare++;
    return NULL;
}

static void both(void *(*function)(void *), pthread_t *threads) {
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, function, NULL);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    pthread_t threads[2], racing[2];
    both(work, threads);
    advance();
    trial_hold();
    advance();
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    CHECK(guarded == 4000 && reports == 0, "%ld, %d reports", guarded, reports);
    both(race, racing);
    for (int i = 0; i < 2; i++) pthread_join(racing[i], NULL);
    CHECK(reports > 0, "a race of %ld was not seen", bare);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
