/* Any of the features in ../chaos, together in one program: `chaos NAME NAME ...` sets them up, waits, and checks them;
 * `chaos --list` prints every name, and behind a tab the word for which a checkpoint is refused.
 * trial: ranks=2 flags=-pthread,-lm,-lrt */
#include "../chaos/feature.h"

#include "../chaos/descriptors.h"
#include "../chaos/files.h"
#include "../chaos/memory.h"
#include "../chaos/mpi.h"
#include "../chaos/process.h"
#include "../chaos/refused.h"
#include "../chaos/signals.h"
#include "../chaos/threads.h"

extern const struct feature __start_features[], __stop_features[];

static const struct feature *named_feature(const char *name) {
    for (const struct feature *at = __start_features; at < __stop_features; at++)
        if (strcmp(at->name, name) == 0) return at;
    fprintf(stderr, "WRONG no feature '%s'\n", name);
    exit(2);
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (const struct feature *at = __start_features; at < __stop_features; at++)
            printf("%s\t%s\n", at->name, at->refused ? at->refused : "");
        return 0;
    }
    const struct feature *chosen[16];
    int count = argc - 1 < 16 ? argc - 1 : 16;
    for (int i = 0; i < count; i++) chosen[i] = named_feature(argv[i + 1]);
    trial_start(&argc, &argv);
    for (int i = 0; i < count; i++) chosen[i]->set();
    trial_hold();
    for (int i = 0; i < count; i++) chosen[i]->check();
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
