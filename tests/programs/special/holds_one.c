/* Holds one thing in the kernel, which its argument names, and uses it afterwards. The file `held` says whether this machine lets it: `held`, or what hinders it.
 * trial: ranks=1 flags=-pthread,-lrt */
#include "../common.h"
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <mqueue.h>
#include <pthread.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define HUGE_BYTES (2 << 20)

static int descriptor = -1;
static unsigned char *memory;

static int is_memory(size_t bytes) {
    return memory != MAP_FAILED && trial_differs(memory, bytes, 11) < 0;
}

/* A ring with one entry. */
static struct io_uring_params ring;
static int sets_ring(void) {
    return descriptor = (int)syscall(SYS_io_uring_setup, 1, &ring);
}
/* One operation that does nothing is taken and answered. */
static int does_ring(void) {
    size_t bytes = ring.sq_off.array + ring.sq_entries * sizeof(unsigned), answers = ring.cq_off.cqes + ring.cq_entries * sizeof(struct io_uring_cqe);
    char *asked = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor, IORING_OFF_SQ_RING);
    char *told = mmap(NULL, answers, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor, IORING_OFF_CQ_RING);
    struct io_uring_sqe *entry = mmap(NULL, sizeof *entry, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor, IORING_OFF_SQES);
    if (asked == MAP_FAILED || told == MAP_FAILED || entry == MAP_FAILED) return 0;
    memset(entry, 0, sizeof *entry);
    entry->opcode = IORING_OP_NOP;
    entry->user_data = 77;
    ((unsigned *)(asked + ring.sq_off.array))[0] = 0;
    __atomic_add_fetch((unsigned *)(asked + ring.sq_off.tail), 1, __ATOMIC_SEQ_CST);
    if (syscall(SYS_io_uring_enter, descriptor, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1) return 0;
    return ((struct io_uring_cqe *)(told + ring.cq_off.cqes))->user_data == 77;
}

/* A queue of messages, of which one waits, and whose name is gone. */
static int sets_queue(void) {
    struct mq_attr room = {.mq_maxmsg = 3, .mq_msgsize = 16};
    char name[32];
    snprintf(name, sizeof name, "/trial-%d", (int)getpid());
    descriptor = mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0600, &room);
    mq_unlink(name);
    return descriptor < 0 ? -1 : mq_send(descriptor, "waits", 6, 3);
}
static int does_queue(void) {
    char text[16];
    unsigned priority = 0;
    return mq_receive(descriptor, text, sizeof text, &priority) == 6 && priority == 3 && strcmp(text, "waits") == 0;
}

/* Memory in huge pages, private and shared, and a file of memory in huge pages. */
static int sets_huge(int flags) {
    memory = mmap(NULL, HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_HUGETLB | flags, -1, 0);
    if (memory == MAP_FAILED) return -1;
    trial_fill(memory, HUGE_BYTES, 11);
    return 0;
}
static int sets_huge_private(void) { return sets_huge(MAP_PRIVATE); }
static int sets_huge_shared(void) { return sets_huge(MAP_SHARED); }
static int does_huge(void) { return is_memory(HUGE_BYTES); }
static int sets_huge_file(void) {
    descriptor = memfd_create("huge", MFD_HUGETLB);
    return descriptor < 0 ? -1 : ftruncate(descriptor, HUGE_BYTES);
}
static int does_huge_file(void) { return lseek(descriptor, 0, SEEK_END) == HUGE_BYTES; }

/* Memory that nobody else can read, without a descriptor. */
static int sets_secret(void) {
    int secret = (int)syscall(447 /* memfd_secret */, 0);
    if (secret < 0 || ftruncate(secret, 8192) != 0) return -1;
    memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, secret, 0);
    if (memory == MAP_FAILED) return -1;
    trial_fill(memory, 8192, 11);
    return close(secret);
}
static int does_secret(void) { return is_memory(8192); }

/* Events that nobody has read. */
static int sets_watch(void) {
    descriptor = inotify_init1(IN_NONBLOCK);
    if (descriptor < 0 || inotify_add_watch(descriptor, ".", IN_CREATE) < 0) return -1;
    int made = open("made-for-the-watch", O_CREAT | O_WRONLY, 0600);
    return made < 0 ? -1 : close(made);
}
static int does_watch(void) {
    _Alignas(struct inotify_event) char events[4096];
    ssize_t bytes = read(descriptor, events, sizeof events);
    const struct inotify_event *first = (const void *)events;
    return bytes > 0 && strcmp(first->name, "made-for-the-watch") == 0;
}

/* A signal that waits to be read, this thread's: others of MPI's have it not blocked. */
static int sets_signals(void) {
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGRTMIN + 3);
    if (sigprocmask(SIG_BLOCK, &one, NULL) != 0) return -1;
    descriptor = signalfd(-1, &one, SFD_NONBLOCK);
    return descriptor < 0 ? -1 : -pthread_sigqueue(pthread_self(), SIGRTMIN + 3, (union sigval){.sival_int = 55});
}
static int does_signals(void) {
    struct signalfd_siginfo one;
    return read(descriptor, &one, sizeof one) == sizeof one && one.ssi_int == 55 && one.ssi_signo == (unsigned)SIGRTMIN + 3;
}

/* Page faults of nobody's memory as yet. */
static int sets_faults(void) { return descriptor = (int)syscall(SYS_userfaultfd, O_CLOEXEC | 1 /* UFFD_USER_MODE_ONLY */); }
static int is_open(void) { return fcntl(descriptor, F_GETFD) >= 0; }

/* This process, by a descriptor. */
static int sets_process(void) { return descriptor = (int)syscall(SYS_pidfd_open, getpid(), 0); }
static int does_process(void) { return syscall(SYS_pidfd_send_signal, descriptor, 0, NULL, 0) == 0; }

/* A timer that has gone off more often than its signal was taken, and goes on. */
static timer_t timer;
static int sets_timer(void) {
    struct sigevent by = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN + 4, .sigev_value.sival_int = 44};
    by._sigev_un._tid = gettid();
    struct itimerspec often = {{0, 20000000}, {0, 1000000}};
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGRTMIN + 4);
    if (sigprocmask(SIG_BLOCK, &one, NULL) != 0 || timer_create(CLOCK_MONOTONIC, &by, &timer) != 0) return -1;
    return timer_settime(timer, 0, &often, NULL);
}
static int does_timer(void) {
    sigset_t one;
    siginfo_t told;
    sigemptyset(&one);
    sigaddset(&one, SIGRTMIN + 4);
    for (int i = 0; i < 3; i++) {
        struct timespec patience = {5, 0};
        if (sigtimedwait(&one, &told, &patience) != SIGRTMIN + 4 || told.si_value.sival_int != 44 || told.si_code != SI_TIMER) return 0;
    }
    struct itimerspec left;
    return timer_gettime(timer, &left) == 0 && left.it_interval.tv_nsec == 20000000;
}

/* A timer that tells by a thread of the C library's. */
static int gone_off;
static void goes_off(union sigval value) { __atomic_add_fetch(&gone_off, value.sival_int, __ATOMIC_SEQ_CST); }
static int sets_timer_thread(void) {
    struct sigevent by = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = goes_off, .sigev_value.sival_int = 1};
    struct itimerspec often = {{0, 20000000}, {0, 20000000}};
    if (timer_create(CLOCK_MONOTONIC, &by, &timer) != 0) return -1;
    return timer_settime(timer, 0, &often, NULL);
}
static int does_timer_thread(void) {
    int before = __atomic_load_n(&gone_off, __ATOMIC_SEQ_CST);
    for (int i = 0; i < 500 && __atomic_load_n(&gone_off, __ATOMIC_SEQ_CST) < before + 3; i++) usleep(10000);
    return __atomic_load_n(&gone_off, __ATOMIC_SEQ_CST) >= before + 3;
}

static int sets_vsock(void) { return descriptor = socket(AF_VSOCK, SOCK_STREAM, 0); }

/* A counter of what this thread computes. */
static int sets_counter(void) {
    struct perf_event_attr what = {.type = PERF_TYPE_SOFTWARE, .size = sizeof what, .config = PERF_COUNT_SW_TASK_CLOCK, .exclude_kernel = 1};
    return descriptor = (int)syscall(SYS_perf_event_open, &what, 0, -1, -1, 0);
}
static int does_counter(void) {
    uint64_t first = 0, second = 0;
    if (read(descriptor, &first, 8) != 8) return 0;
    trial_compute(0.02);
    return read(descriptor, &second, 8) == 8 && second > first;
}

/* Rules that nobody is under as yet. */
static int sets_rules(void) {
    uint64_t may_not[] = {1 << 11 /* LANDLOCK_ACCESS_FS_MAKE_BLOCK */};
    return descriptor = (int)syscall(444 /* landlock_create_ruleset */, may_not, sizeof may_not[0], 0);
}
static int does_rules(void) { return syscall(446 /* landlock_restrict_self */, descriptor, 0) == 0; }

static int sets_announcements(void) { return descriptor = (int)syscall(SYS_fanotify_init, 0x200 /* FAN_REPORT_FID */, O_RDONLY); }

static int sets_program(void) {
    struct { uint32_t type, key, value, entries, flags; } map = {2 /* BPF_MAP_TYPE_ARRAY */, 4, 8, 1, 0};
    return descriptor = (int)syscall(SYS_bpf, 0 /* BPF_MAP_CREATE */, &map, sizeof map);
}

static const struct thing {
    const char *name;
    int (*sets)(void);
    int (*does)(void);
} things[] = {
    {"io_uring", sets_ring, does_ring},
    {"message_queue", sets_queue, does_queue},
    {"huge_private", sets_huge_private, does_huge},
    {"huge_shared", sets_huge_shared, does_huge},
    {"huge_file", sets_huge_file, does_huge_file},
    {"memory_secret", sets_secret, does_secret},
    {"inotify_unread", sets_watch, does_watch},
    {"signalfd_waiting", sets_signals, does_signals},
    {"userfaultfd", sets_faults, is_open},
    {"pidfd", sets_process, does_process},
    {"timer_overrun", sets_timer, does_timer},
    {"timer_thread", sets_timer_thread, does_timer_thread},
    {"vsock", sets_vsock, is_open},
    {"perf_event", sets_counter, does_counter},
    {"landlock_rules", sets_rules, does_rules},
    {"fanotify", sets_announcements, is_open},
    {"bpf_map", sets_program, is_open},
};

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    const struct thing *it = NULL;
    for (size_t i = 0; argc > 1 && i < sizeof things / sizeof *things; i++)
        if (strcmp(argv[1], things[i].name) == 0) it = &things[i];
    CHECK(it != NULL, "nothing has the name %s", argc > 1 ? argv[1] : "(none)");
    char path[PATH_MAX];
    trial_path(path, sizeof path, "held");
    FILE *held = fopen(path, "w");
    CHECK(held != NULL, "%s: %s", path, strerror(errno));
    int is_held = it && held && it->sets() >= 0;
    if (held) {
        fprintf(held, "%s\n", is_held ? "held" : strerror(errno));
        fclose(held);
    }
    trial_hold();
    if (is_held) CHECK(it->does(), "%s does not do any more what it did: %s", it->name, strerror(errno));
    return trial_finish();
}
