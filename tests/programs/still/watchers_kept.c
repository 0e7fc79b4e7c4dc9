/* Whom the kernel tells: owner and signal of a descriptor, watches of inotify, entries of poll sets whose number was closed or
 * that have fired once, counters that count down, memory files that are sealed.
 * trial: ranks=2 flags=-pthread */
#include "../common.h"
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

static volatile sig_atomic_t told;
static void on_told(int signal, siginfo_t *info, void *context) { (void)signal, (void)info, (void)context, told++; }

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    char text[64];
    int ends[2], more[2];
    CHECK(pipe(ends) == 0 && pipe(more) == 0, "pipe: %s", strerror(errno));
    struct sigaction action = {.sa_sigaction = on_told, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGRTMIN + 5, &action, NULL);
    CHECK(fcntl(ends[0], F_SETOWN, getpid()) == 0 && fcntl(ends[0], F_SETSIG, SIGRTMIN + 5) == 0
          && fcntl(ends[0], F_SETFL, O_ASYNC) == 0, "owner: %s", strerror(errno));
    struct f_owner_ex owner = {F_OWNER_TID, gettid()};
    CHECK(fcntl(more[0], F_SETOWN_EX, &owner) == 0, "owner: %s", strerror(errno));

    /* An entry under a number that is closed, one under a number that leads elsewhere now, one that has fired. */
    int set = epoll_create1(0), numbers[3], kept[3];
    for (int i = 0; i < 3; i++) {
        numbers[i] = eventfd(0, EFD_NONBLOCK), kept[i] = dup(numbers[i]);
        struct epoll_event event = {.events = EPOLLIN | (i == 2 ? EPOLLONESHOT : 0), .data.u32 = 100 + i};
        CHECK(epoll_ctl(set, EPOLL_CTL_ADD, numbers[i], &event) == 0, "epoll_ctl: %s", strerror(errno));
    }
    struct epoll_event got[4];
    uint64_t one = 1;
    CHECK(write(kept[2], &one, 8) == 8 && epoll_wait(set, got, 4, 0) == 1 && got[0].data.u32 == 102, "poll set");
    dup2(open("/dev/null", O_RDONLY), numbers[1]);
    int free_number = dup2(numbers[0], 500);
    struct epoll_event stale = {.events = EPOLLIN, .data.u32 = 100};
    CHECK(epoll_ctl(set, EPOLL_CTL_DEL, numbers[0], NULL) == 0
          && epoll_ctl(set, EPOLL_CTL_ADD, free_number, &stale) == 0, "epoll_ctl: %s", strerror(errno));
    close(free_number);

    int semaphore = eventfd(3, EFD_SEMAPHORE | EFD_NONBLOCK);
    int sealed = memfd_create("sealed", MFD_ALLOW_SEALING), plain = memfd_create("plain", 0);
    CHECK(write(sealed, "sealed", 6) == 6 && fcntl(sealed, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK) == 0, "seal: %s", strerror(errno));
    char *map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, sealed, 0);
    CHECK(map != MAP_FAILED && memcmp(map, "sealed", 6) == 0, "map: %s", strerror(errno));
    sigset_t mask;
    sigemptyset(&mask), sigaddset(&mask, SIGUSR2);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    int signals = signalfd(-1, &mask, SFD_NONBLOCK);
    raise(SIGUSR2);

    char watched[PATH_MAX], file[PATH_MAX];
    trial_own_file(watched, sizeof watched, "watched");
    CHECK(mkdir(watched, 0700) == 0 || errno == EEXIST, "mkdir: %s", strerror(errno));
    snprintf(file, sizeof file, "%.4000s/file", watched);
    int inside = open(file, O_CREAT | O_RDWR, 0600), watches = inotify_init1(IN_NONBLOCK);
    int watch = inotify_add_watch(watches, watched, IN_CREATE | IN_OPEN | IN_CLOSE | IN_ACCESS);
    CHECK(watch >= 0, "inotify: %s", strerror(errno));
    trial_hold();
    CHECK(write(ends[1], "x", 1) == 1, "write");
    for (int i = 0; i < 1000 && !told; i++) usleep(1000);
    CHECK(told == 1 && fcntl(ends[0], F_GETSIG) == SIGRTMIN + 5 && fcntl(ends[0], F_GETOWN) == getpid(), "told %d times", (int)told);
    owner.pid = 0;
    CHECK(fcntl(more[0], F_GETOWN_EX, &owner) == 0 && owner.type == F_OWNER_TID && owner.pid == gettid(), "owner %d, not %d", owner.pid, gettid());

    CHECK(epoll_wait(set, got, 4, 0) == 0, "the poll set says something unasked");
    CHECK(write(kept[0], &one, 8) == 8 && epoll_wait(set, got, 4, 1000) == 1 && got[0].data.u32 == 100, "entry of a closed number");
    CHECK(read(kept[0], &one, 8) == 8, "read");
    one = 1;
    CHECK(write(kept[1], &one, 8) == 8 && epoll_wait(set, got, 4, 1000) == 1 && got[0].data.u32 == 101, "entry of a number that leads elsewhere");
    CHECK(read(kept[1], &one, 8) == 8 && read(numbers[1], text, 1) == 0, "read");
    CHECK(fcntl(free_number, F_GETFD) == -1, "the closed number is open");
    struct epoll_event again = {.events = EPOLLIN | EPOLLONESHOT, .data.u32 = 102};
    CHECK(epoll_ctl(set, EPOLL_CTL_MOD, numbers[2], &again) == 0 && epoll_wait(set, got, 4, 1000) == 1 && got[0].data.u32 == 102, "fired before");

    for (int i = 0; i < 3; i++) CHECK(read(semaphore, &one, 8) == 8 && one == 1, "semaphore: %d", (int)one);
    CHECK(read(semaphore, &one, 8) == -1 && errno == EAGAIN, "semaphore: more than 3");
    CHECK(fcntl(sealed, F_GET_SEALS) == (F_SEAL_WRITE | F_SEAL_SHRINK) && fcntl(plain, F_GET_SEALS) == F_SEAL_SEAL, "seals %x, %x", fcntl(sealed, F_GET_SEALS), fcntl(plain, F_GET_SEALS));
    CHECK(memcmp(map, "sealed", 6) == 0 && write(sealed, "x", 1) == -1, "the sealed file");
    struct signalfd_siginfo info = {0};
    CHECK(read(signals, &info, sizeof info) == sizeof info && info.ssi_signo == SIGUSR2, "signal %d", (int)info.ssi_signo);

    char events[4096];
    ssize_t bytes = read(watches, events, sizeof events);
    CHECK(bytes == -1 && errno == EAGAIN, "%zd bytes of events that the program has not caused", bytes);
    snprintf(file, sizeof file, "%.4000s/new", watched);
    unlink(file);
    close(open(file, O_CREAT | O_RDWR, 0600));
    bytes = read(watches, events, sizeof events);
    struct inotify_event *event = (struct inotify_event *)events;
    CHECK(bytes > 0 && event->wd == watch && strcmp(event->name, "new") == 0, "%zd bytes of events", bytes);
    close(inside);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
