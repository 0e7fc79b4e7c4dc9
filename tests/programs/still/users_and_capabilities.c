/* Users, groups, capabilities and securebits are what the program has chosen, in each of its threads and so is its
 * parent's death signal. Where the program is not root's it has less to choose.
 * trial: ranks=2 flags=-pthread */
#include "../common.h"
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Unprivileged, and nobody's. */
#define USER 54321
#define GROUP 54322

struct state {
    unsigned user[4], group[4];
    int groups;
    gid_t list[8];
    unsigned capabilities[6];
    long bits, bounding, ambient;
};

static void look(struct state *state) {
    struct {
        unsigned version;
        int pid;
    } header = {0x20080522, 0};
    memset(state, 0, sizeof *state);
    getresuid(&state->user[0], &state->user[1], &state->user[2]);
    getresgid(&state->group[0], &state->group[1], &state->group[2]);
    state->user[3] = (unsigned)setfsuid((uid_t)-1);
    state->group[3] = (unsigned)setfsgid((gid_t)-1);
    state->groups = getgroups(8, state->list);
    syscall(SYS_capget, &header, state->capabilities);
    state->bits = prctl(PR_GET_SECUREBITS, 0, 0, 0, 0);
    state->bounding = prctl(PR_CAPBSET_READ, 25, 0, 0, 0);
    state->ambient = prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, 10, 0, 0);
}

static void compare(const char *whose, const struct state *before) {
    struct state now;
    look(&now);
    for (int i = 0; i < 4; i++) CHECK(now.user[i] == before->user[i] && now.group[i] == before->group[i], "%s: id %d: user %u for %u, group %u for %u", whose, i, now.user[i], before->user[i], now.group[i], before->group[i]);
    CHECK(now.groups == before->groups && memcmp(now.list, before->list, sizeof now.list) == 0, "%s: %d groups for %d", whose, now.groups, before->groups);
    for (int i = 0; i < 6; i++) CHECK(now.capabilities[i] == before->capabilities[i], "%s: capabilities %d: %x for %x", whose, i, now.capabilities[i], before->capabilities[i]);
    CHECK(now.bits == before->bits, "%s: securebits %lx for %lx", whose, now.bits, before->bits);
    CHECK(now.bounding == before->bounding && now.ambient == before->ambient, "%s: bounding %ld, ambient %ld", whose, now.bounding, now.ambient);
}

static int looked, dropped;

static void *with_capabilities(void *argument) {
    int root = *(int *)argument;
    if (root) {
        /* This thread alone: a system call, where the C library would change them all. */
        struct {
            unsigned version;
            int pid;
        } header = {0x20080522, 0};
        unsigned few[6] = {1u << 10 | 1u << 8, 1u << 10 | 1u << 8 | 1, 1u << 10, 0, 0, 0};
        CHECK(prctl(PR_CAPBSET_DROP, 25, 0, 0, 0) == 0, "bounding: %s", strerror(errno));
        CHECK(prctl(PR_SET_SECUREBITS, 1, 0, 0, 0) == 0, "securebits: %s", strerror(errno));
        CHECK(syscall(SYS_capset, &header, few) == 0, "capset: %s", strerror(errno));
        CHECK(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 10, 0, 0) == 0, "ambient: %s", strerror(errno));
    }
    struct state state;
    look(&state);
    __atomic_store_n(&looked, 1, __ATOMIC_RELEASE);
    /* The main thread may not be allowed to see the trial's directory any more. */
    while (!__atomic_load_n(&dropped, __ATOMIC_ACQUIRE)) usleep(1000);
    trial_hold();
    compare("the thread", &state);
    return NULL;
}

int main(int argc, char **argv) {
    trial_start_threads(&argc, &argv, MPI_THREAD_FUNNELED);
    int root = geteuid() == 0, death = -1;
    pthread_t thread;
    pthread_create(&thread, NULL, with_capabilities, &root);
    while (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE)) usleep(1000);
    if (root) {
        gid_t groups[] = {GROUP, GROUP + 2};
        int kept = prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
        CHECK(kept == 0, "keepcaps: %s", strerror(errno));
        /* For the calling thread alone, so that the other keeps what it has. */
        CHECK(syscall(SYS_setgroups, 2, groups) == 0, "setgroups: %s", strerror(errno));
        CHECK(syscall(SYS_setresgid, GROUP, GROUP, GROUP + 1) == 0, "setresgid: %s", strerror(errno));
        CHECK(syscall(SYS_setresuid, USER, USER, USER + 1) == 0, "setresuid: %s", strerror(errno));
        setfsgid(GROUP + 1);
    }
    prctl(PR_SET_PDEATHSIG, SIGURG, 0, 0, 0);
    mode_t mask = umask(037);
    struct state state;
    look(&state);
    __atomic_store_n(&dropped, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    compare("main", &state);
    if (root) CHECK(syscall(SYS_setuid, 0) != 0, "%s", "root again");
    prctl(PR_GET_PDEATHSIG, &death, 0, 0, 0);
    CHECK(death == SIGURG, "death signal %d", death);
    CHECK(umask(mask) == 037, "%s", "another umask");
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    MPI_Finalize();
    if (!trial_failures) printf("OK %d\n", trial_rank);
    return trial_failures != 0;
}
