/* What every trapped system call answers to pointers that lead nowhere, to where one may not read or write, and half into
 * the one and half into the other. The list is complete: a test of the gate compares it with the gate's own table. */
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/bpf.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

enum { MOST_ARGUMENTS = 6, PAGE = 4096 };

/* A good call: it must neither wait nor change what later calls depend on. Arguments by kind, in `kinds`:
 *   '.'  no pointer
 *   'i'  the kernel reads there
 *   'I'  the kernel reads there, and NULL means something
 *   'o'  the kernel writes there
 *   'O'  the kernel writes there, and NULL means something */
struct call {
    const char *name;
    long number;
    const char *kinds;
    long arguments[MOST_ARGUMENTS];
};

/* NAME, argument, what is there, errno (0: none). */
typedef void (*told)(const char *name, int argument, const char *what, int error);

static char *pages; /* readable and writable, only readable, inaccessible */

static inline void bad_pointers(told tell) {
    static struct sigaction action;
    static uint64_t mask, none[16];
    static struct timespec nothing, rest;
    static struct { const void *mask; size_t size; } behind;
    static struct epoll_event event;
    static char path[] = "/", linked[] = "/proc/self/cwd", name[] = "name", queue[] = "stillpoint-none", program[] = "/bin/true";
    static char *list[] = {program, NULL};
    static char text[PAGE];
    static struct sigevent notify;
    static struct itimerspec later;
    static timer_t timer;
    static struct open_how how;
    static struct { unsigned bytes; int kind; char data[128]; } handle = {8, 1, {0}};
    static struct sockaddr_storage from;
    static socklen_t from_bytes;
    static int pair[2], owner[2];
    static struct msghdr message;
    static struct mmsghdr messages[1];
    static union bpf_attr attribute;
    static char event_attribute[128], ring[256];
    static struct iovec local, remote;
    static siginfo_t info;
    static cpu_set_t processors;
    static struct sched_param parameter;
    static stack_t alternate = {.ss_flags = SS_DISABLE};
    static struct { unsigned size, policy; char rest[40]; } attributes;
    static struct rlimit limit;
    static void *page_list[1];
    static int page_status[1];
    static unsigned long nodes[16];

    if (!pages) {
        /* Beside a page that is nobody's, so that what begins at the end of one is cut off. */
        pages = mmap(NULL, 6 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mprotect(pages, PAGE, PROT_READ | PROT_WRITE);
        mprotect(pages + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE);
        memset(pages + 2 * PAGE, 1, PAGE);
        mprotect(pages + 2 * PAGE, PAGE, PROT_READ);
    }
    behind.size = 8;
    notify.sigev_notify = SIGEV_NONE;
    attribute.map_type = BPF_MAP_TYPE_ARRAY;
    attributes.size = sizeof attributes;
    info.si_code = SI_QUEUE;
    page_list[0] = pages;
    int self = getpid(), polled = epoll_create1(0), noticing = inotify_init1(0), sockets[2];
    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets);
    if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &notify, &timer)) abort();
    long timer_id = *(int *)&timer;
    local = remote = (struct iovec){text, 8};
    sched_getaffinity(0, sizeof processors, &processors);
    getrlimit(RLIMIT_CORE, &limit);

#define CALL(call, kinds, ...) {#call, SYS_##call, kinds, {__VA_ARGS__}}
#define AT(object) (long)(object)
    struct call calls[] = {
        CALL(rt_sigaction, ".IO.", SIGUSR2, AT(&action), AT(&action), 8),
        CALL(rt_sigprocmask, ".IO.", SIG_BLOCK, AT(&mask), AT(&mask), 8),
        CALL(rt_sigsuspend, "i.", AT(&mask), 8),
        CALL(rt_sigtimedwait, "iOI.", AT(&mask), AT(&info), AT(&nothing), 8),
        CALL(ppoll, "..II.", 0, 0, AT(&nothing), AT(&mask), 8),
        CALL(pselect6, "....II", 0, 0, 0, 0, AT(&nothing), AT(&behind)),
        CALL(epoll_pwait, ".o..I.", polled, AT(&event), 1, 0, AT(&mask), 8),
        CALL(epoll_pwait2, ".o.II.", polled, AT(&event), 1, AT(&nothing), AT(&mask), 8),
        CALL(epoll_wait, ".o..", polled, AT(&event), 1, 0),
        CALL(poll, "i..", AT(none), 1, 0),
        CALL(futex, "i..I..", AT(none), 0 /* FUTEX_WAIT */, 7, AT(&nothing), 0, 0),
        CALL(io_getevents, "....I", 0, 1, 1, 0, AT(&nothing)),
        CALL(io_pgetevents, "....I.", 0, 1, 1, 0, AT(&nothing), 0),
        CALL(getrusage, ".o", RUSAGE_SELF, AT(text)),
        CALL(times, "O", AT(text)),
        CALL(wait4, ".O.O", -1, AT(text), WNOHANG, AT(text)),
        CALL(waitid, "..O.O", P_ALL, 0, AT(&info), WEXITED | WNOHANG, AT(text)),
        CALL(nanosleep, "iO", AT(&nothing), AT(&rest)),
        CALL(clock_nanosleep, "..iO", CLOCK_MONOTONIC, 0, AT(&nothing), AT(&rest)),
        CALL(execve, "iII", AT("/no/such/program"), AT(list), AT(list)),
        CALL(execve, ".II", AT(program), AT(list), AT(list)),
        CALL(execveat, ".iII.", AT_FDCWD, AT("/no/such/program"), AT(list), AT(list), 0),
        CALL(execveat, "..II.", AT_FDCWD, AT(program), AT(list), AT(list), 0),
        CALL(readlink, "io.", AT(linked), AT(text), 64),
        CALL(readlinkat, ".io.", AT_FDCWD, AT(linked), AT(text), 64),
        CALL(readlink, ".o.", AT("/proc/self/exe"), AT(text), 64),
        CALL(timer_create, ".io", CLOCK_MONOTONIC, AT(&notify), AT(&timer)),
        CALL(timer_settime, "..iO", timer_id, 0, AT(&later), AT(&later)),
        CALL(timer_gettime, ".o", timer_id, AT(&later)),
        CALL(open, "i..", AT(path), O_RDONLY, 0),
        CALL(openat, ".i..", AT_FDCWD, AT(path), O_RDONLY, 0),
        CALL(openat2, ".ii.", AT_FDCWD, AT(path), AT(&how), sizeof how),
        CALL(open_by_handle_at, ".i.", AT_FDCWD, AT(&handle), O_RDONLY),
        CALL(creat, "i.", AT("/no/such/file"), 0600),
        CALL(accept, ".OO", sockets[0], AT(&from), AT(&from_bytes)),
        CALL(accept4, ".OO.", sockets[0], AT(&from), AT(&from_bytes), 0),
        CALL(socketpair, "...o", AF_UNIX, SOCK_STREAM, 0, AT(pair)),
        CALL(pipe, "o", AT(pair)),
        CALL(pipe2, "o.", AT(pair), O_CLOEXEC),
        CALL(fcntl, "..i", sockets[0], F_SETOWN_EX, AT(owner)),
        CALL(fcntl, "..o", sockets[0], F_GETOWN_EX, AT(owner)),
        CALL(signalfd, ".i.", -1, AT(&mask), 8),
        CALL(signalfd4, ".i..", -1, AT(&mask), 8, 0),
        CALL(memfd_create, "i.", AT(name), 0),
        CALL(perf_event_open, "i....", AT(event_attribute), 0, -1, -1, 0),
        CALL(bpf, ".i.", BPF_MAP_CREATE, AT(&attribute), sizeof attribute),
        CALL(io_uring_setup, ".i", 4, AT(ring)),
        CALL(mq_open, "i..I", AT(queue), O_RDWR, 0600, AT(none)),
        CALL(recvmsg, ".i.", sockets[0], AT(&message), MSG_DONTWAIT),
        CALL(recvmmsg, ".i..I", sockets[0], AT(messages), 1, MSG_DONTWAIT, AT(&nothing)),
        CALL(stat, "io", AT(path), AT(text)),
        CALL(stat, ".o", AT("/proc/self/exe"), AT(text)),
        CALL(lstat, "io", AT(path), AT(text)),
        CALL(newfstatat, ".io.", AT_FDCWD, AT(path), AT(text), 0),
        CALL(statx, ".i..o", AT_FDCWD, AT(path), 0, 0, AT(text)),
        CALL(access, "i.", AT(path), R_OK),
        CALL(faccessat, ".i.", AT_FDCWD, AT(path), R_OK),
        CALL(faccessat2, ".i..", AT_FDCWD, AT(path), R_OK, 0),
        CALL(chdir, "i", AT(".")),
        CALL(chmod, "i.", AT("/no/such/file"), 0600),
        CALL(fchmodat, ".i.", AT_FDCWD, AT("/no/such/file"), 0600),
        CALL(fchmodat2, ".i..", AT_FDCWD, AT("/no/such/file"), 0600, 0),
        CALL(chown, "i..", AT("/no/such/file"), -1, -1),
        CALL(utime, "iI", AT("/no/such/file"), AT(none)),
        CALL(utimes, "iI", AT("/no/such/file"), AT(none)),
        CALL(futimesat, ".iI", AT_FDCWD, AT("/no/such/file"), AT(none)),
        CALL(utimensat, ".iI.", AT_FDCWD, AT("/no/such/file"), AT(none), 0),
        CALL(statfs, "io", AT(path), AT(text)),
        CALL(setxattr, "ii...", AT("/no/such/file"), AT("user.name"), AT(text), 1, 0),
        CALL(getxattr, "ii.", AT(path), AT("user.name"), AT(text), 1),
        CALL(listxattr, "iO.", AT(path), AT(text), 64),
        CALL(removexattr, "ii", AT("/no/such/file"), AT("user.name")),
        CALL(inotify_add_watch, ".i.", noticing, AT("/no/such/file"), 1),
        CALL(getsockopt, "...oo", sockets[0], SOL_SOCKET, 77, AT(pair), AT(&from_bytes)),
        CALL(futex, "i.....", AT(none), 7 /* FUTEX_UNLOCK_PI */, 0, 0, 0, 0),
        CALL(futex, "i.....", AT(none), 8 /* FUTEX_TRYLOCK_PI */, 0, 0, 0, 0),
        CALL(sigaltstack, "IO", AT(&alternate), AT(&alternate)),
        CALL(msgsnd, ".i..", -1, AT(text), 8, IPC_NOWAIT),
        CALL(msgrcv, ".o...", -1, AT(text), 8, 0, IPC_NOWAIT),
        CALL(semop, ".i.", -1, AT(none), 1),
        CALL(semtimedop, ".i.I", -1, AT(none), 1, AT(&nothing)),
        CALL(io_setup, ".i", 1, AT(none)),
        CALL(modify_ldt, ".i.", 1, AT(none), 16),
        CALL(seccomp, "..i", 1, 1 << 20, AT(none)),
        CALL(clock_gettime, ".o", -2, AT(&nothing)),
        CALL(clock_gettime, ".o", ~self << 3 | 2, AT(&rest)),
        CALL(clock_getres, ".O", ~self << 3 | 2, AT(&rest)),
        CALL(rt_sigqueueinfo, "..i", self, 0, AT(&info)),
        CALL(rt_tgsigqueueinfo, "...i", self, self, 0, AT(&info)),
        CALL(sched_setaffinity, "..i", self, sizeof processors, AT(&processors)),
        CALL(sched_getaffinity, "..o", self, sizeof processors, AT(&processors)),
        CALL(sched_setscheduler, "..i", self, SCHED_OTHER, AT(&parameter)),
        CALL(sched_setparam, ".i", self, AT(&parameter)),
        CALL(sched_getparam, ".o", self, AT(&parameter)),
        CALL(sched_setattr, ".i.", self, AT(&attributes), 0),
        CALL(sched_getattr, ".o..", self, AT(&attributes), sizeof attributes, 0),
        CALL(sched_rr_get_interval, ".o", self, AT(&rest)),
        CALL(prlimit64, "..IO", self, RLIMIT_CORE, AT(&limit), AT(&limit)),
        CALL(get_robust_list, ".oo", self, AT(none), AT(none)),
        CALL(process_vm_readv, ".i.i..", self, AT(&local), 1, AT(&remote), 1, 0),
        CALL(process_madvise, ".i...", -1, AT(&local), 1, MADV_HUGEPAGE, 0),
        CALL(process_vm_writev, ".i.i..", self, AT(&local), 1, AT(&remote), 1, 0),
        CALL(move_pages, "..iIo.", self, 1, AT(page_list), 0, AT(page_status), 0),
        CALL(migrate_pages, "..II", self, 64, AT(nodes), AT(nodes)),
        CALL(mbind, "...I..", AT(pages), PAGE, 2 /* MPOL_BIND */, AT(nodes), 64, 0),
    };
#undef CALL
#undef AT
    struct {
        const char *what;
        char *address;
        int readable;
    } places[] = {
        {"nothing", NULL, 0},
        {"the first page", (char *)8, 0},
        {"an inaccessible page", pages + PAGE, 0},
        {"a page to read", pages + 2 * PAGE, 1},
        {"the end of a page", pages + PAGE - 1, 0},
        {"the end of a page to read", pages + 3 * PAGE - 3, 0},
        {"no address at all", (char *)(1ul << 52), 0},
        {"the kernel", (char *)(0xfffful << 48), 0},
        {"the last bytes", (char *)-2l, 0},
    };
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++) {
        for (int argument = 0; calls[c].kinds[argument]; argument++) {
            char kind = calls[c].kinds[argument];
            if (kind == '.') continue;
            for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
                if (!places[p].address && (kind == 'I' || kind == 'O')) continue;
                if (places[p].readable && (kind == 'i' || kind == 'I')) continue;
                memset(pages, 1, PAGE); /* strings do not end before the page */
                long given[MOST_ARGUMENTS];
                memcpy(given, calls[c].arguments, sizeof given);
                given[argument] = (long)places[p].address;
                long result = syscall(calls[c].number, given[0], given[1], given[2], given[3], given[4], given[5]);
                tell(calls[c].name, argument, places[p].what, result == -1 ? errno : 0);
            }
        }
    }
    /* One pointer further: masks behind pselect's structure, strings behind lists. */
    for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
        if (!places[p].address || places[p].readable) continue;
        memset(pages, 1, PAGE);
        behind.mask = places[p].address;
        long result = syscall(SYS_pselect6, 0, NULL, NULL, NULL, &nothing, &behind);
        tell("pselect6's mask", 5, places[p].what, result == -1 ? errno : 0);
        char *bad[] = {program, places[p].address, NULL};
        result = syscall(SYS_execve, program, bad, list);
        tell("execve's argument", 1, places[p].what, result == -1 ? errno : 0);
        result = syscall(SYS_execve, program, list, bad);
        tell("execve's variable", 2, places[p].what, result == -1 ? errno : 0);
    }
    behind.mask = NULL;
    syscall(SYS_timer_delete, timer_id);
    close(polled);
    close(noticing);
    close(sockets[0]);
    close(sockets[1]);
}

/* Trapped calls that take no pointer, or none that the kernel follows:
 *   mmap mremap brk shmat clone fork vfork exit exit_group arch_prctl set_tid_address timer_getoverrun timer_delete
 *   socket dup dup2 dup3 epoll_create epoll_create1 eventfd eventfd2 timerfd_create inotify_init inotify_init1 fanotify_init
 *   memfd_secret userfaultfd pidfd_open pidfd_getfd ioctl close close_range getpid getppid gettid getpgrp getpgid setpgid getsid
 *   setsid kill tgkill tkill getpriority setpriority ioprio_get ioprio_set sched_getscheduler kcmp mprotect munmap shmdt pkey_mprotect
 *   msync remap_file_pages pause madvise mlock mlock2 munlock mlockall munlockall
 *   ptrace prctl pivot_root chroot iopl ioperm io_destroy add_key request_key keyctl unshare setns membarrier pkey_alloc pkey_free
 *   landlock_create_ruleset landlock_restrict_self fsopen fsmount fspick open_tree open_tree_attr lsm_set_self_attr mseal
 *   semget msgget
 * ... and those that are refused as an older kernel would: clone3 rseq map_shadow_stack */
