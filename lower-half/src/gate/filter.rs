//! The seccomp filter: which system calls are trapped when they are made from the upper half.
//!
//! The program tests the call's number first and the instruction pointer last, so that calls which are never
//! trapped have a constant answer: the kernel keeps those in a bitmap and does not run the program for
//! them. Written by hand because seccomp libraries have no conditions on the instruction pointer.

use libc::sock_filter;
use stillpoint_wrappers::gate::{ARENA_END, ARENA_START};

/// When a call with a rule's number is trapped.
#[derive(Clone, Copy, Debug)]
enum When {
    Always,
    /// The argument with this number is not null.
    Given(u8),
    /// The argument's low half has one of two values.
    Either(u8, u32, u32),
    /// Never trapped: fails with this error at once.
    Refuse(u32),
}

const F_DUPFD: u32 = libc::F_DUPFD as u32;
const F_DUPFD_CLOEXEC: u32 = libc::F_DUPFD_CLOEXEC as u32;
const TIOCGPTPEER: u32 = libc::TIOCGPTPEER as u32;
const ARCH_SET_GS: u32 = 0x1001;
const ARCH_GET_GS: u32 = 0x1004;

/// What is trapped; anything that is hot and makes no kernel state must not be here.
#[rustfmt::skip]
const RULES: &[(i64, When)] = &[
    // Placement of memory.
    (libc::SYS_mmap, When::Always),
    (libc::SYS_mremap, When::Always),
    (libc::SYS_brk, When::Always),
    (libc::SYS_shmat, When::Always),
    // Signals: the stop signal and SIGSYS must stay deliverable.
    (libc::SYS_rt_sigaction, When::Always),
    (libc::SYS_rt_sigprocmask, When::Always),
    (libc::SYS_rt_sigsuspend, When::Always),
    (libc::SYS_rt_sigtimedwait, When::Always),
    (libc::SYS_ppoll, When::Given(3)),
    (libc::SYS_pselect6, When::Given(5)),
    (libc::SYS_epoll_pwait, When::Given(4)),
    (libc::SYS_epoll_pwait2, When::Given(4)),
    // Sleeps without a place for what is left of them.
    (libc::SYS_nanosleep, When::Either(1, 0, 0)),
    (libc::SYS_clock_nanosleep, When::Either(3, 0, 0)),
    // Processes and threads.
    (libc::SYS_clone, When::Always),
    (libc::SYS_clone3, When::Refuse(libc::ENOSYS as u32)),
    (libc::SYS_fork, When::Always),
    (libc::SYS_vfork, When::Always),
    (libc::SYS_exit, When::Always),
    (libc::SYS_exit_group, When::Always),
    (libc::SYS_execve, When::Always),
    (libc::SYS_execveat, When::Always),
    (libc::SYS_rseq, When::Refuse(libc::ENOSYS as u32)),
    (libc::SYS_arch_prctl, When::Either(0, ARCH_SET_GS, ARCH_GET_GS)),
    // Identities.
    (libc::SYS_getpid, When::Always),
    (libc::SYS_getppid, When::Always),
    (libc::SYS_gettid, When::Always),
    (libc::SYS_set_tid_address, When::Always),
    (libc::SYS_kill, When::Always),
    (libc::SYS_tgkill, When::Always),
    (libc::SYS_tkill, When::Always),
    (libc::SYS_rt_sigqueueinfo, When::Always),
    (libc::SYS_rt_tgsigqueueinfo, When::Always),
    (libc::SYS_sched_setaffinity, When::Always),
    (libc::SYS_sched_getaffinity, When::Always),
    (libc::SYS_sched_setscheduler, When::Always),
    (libc::SYS_sched_getscheduler, When::Always),
    (libc::SYS_sched_setparam, When::Always),
    (libc::SYS_sched_getparam, When::Always),
    (libc::SYS_get_robust_list, When::Always),
    (libc::SYS_prlimit64, When::Given(0)),
    (libc::SYS_readlink, When::Always),
    (libc::SYS_readlinkat, When::Always),
    // Timers have ids.
    (libc::SYS_timer_create, When::Always),
    (libc::SYS_timer_settime, When::Always),
    (libc::SYS_timer_gettime, When::Always),
    (libc::SYS_timer_getoverrun, When::Always),
    (libc::SYS_timer_delete, When::Always),
    // Descriptors: whose they are.
    (libc::SYS_open, When::Always),
    (libc::SYS_openat, When::Always),
    (libc::SYS_openat2, When::Always),
    (libc::SYS_open_by_handle_at, When::Always),
    (libc::SYS_creat, When::Always),
    (libc::SYS_socket, When::Always),
    (libc::SYS_accept, When::Always),
    (libc::SYS_accept4, When::Always),
    (libc::SYS_socketpair, When::Always),
    (libc::SYS_pipe, When::Always),
    (libc::SYS_pipe2, When::Always),
    (libc::SYS_dup, When::Always),
    (libc::SYS_dup2, When::Always),
    (libc::SYS_dup3, When::Always),
    (libc::SYS_fcntl, When::Either(1, F_DUPFD, F_DUPFD_CLOEXEC)),
    (libc::SYS_epoll_create, When::Always),
    (libc::SYS_epoll_create1, When::Always),
    (libc::SYS_eventfd, When::Always),
    (libc::SYS_eventfd2, When::Always),
    (libc::SYS_timerfd_create, When::Always),
    (libc::SYS_signalfd, When::Always),
    (libc::SYS_signalfd4, When::Always),
    (libc::SYS_inotify_init, When::Always),
    (libc::SYS_inotify_init1, When::Always),
    (libc::SYS_fanotify_init, When::Always),
    (libc::SYS_memfd_create, When::Always),
    (libc::SYS_memfd_secret, When::Always),
    (libc::SYS_userfaultfd, When::Always),
    (libc::SYS_perf_event_open, When::Always),
    (libc::SYS_bpf, When::Always),
    (libc::SYS_io_uring_setup, When::Always),
    (libc::SYS_mq_open, When::Always),
    (libc::SYS_pidfd_open, When::Always),
    (libc::SYS_pidfd_getfd, When::Always),
    (libc::SYS_recvmsg, When::Always),
    (libc::SYS_ioctl, When::Either(1, TIOCGPTPEER, TIOCGPTPEER)),
    (libc::SYS_close, When::Always),
    (libc::SYS_close_range, When::Always),
];

const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;
const NUMBER_AT: u32 = 0;
const ARCH_AT: u32 = 4;
const IP_LOW_AT: u32 = 8;
const IP_HIGH_AT: u32 = 12;

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const JUMP: u16 = (libc::BPF_JMP | libc::BPF_JA) as u16;
const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// Addresses below 4 GiB from which calls are trapped too (a non-PIE executable's own text).
pub type LowText = Option<(u32, u32)>;

fn one(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

fn allow() -> sock_filter {
    one(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0)
}

/// "Was the call made from the upper half?": `verdict` if so, else the call is allowed.
fn from_upper(low: LowText, verdict: u32) -> Vec<sock_filter> {
    // An empty range matches nothing.
    let (low_start, low_end) = low.unwrap_or((0, 0));
    vec![
        one(LOAD, IP_HIGH_AT, 0, 0),
        one(EQUAL, 0, 2, 0),
        one(AT_LEAST, (ARENA_START >> 32) as u32, 0, 4),
        one(AT_LEAST, (ARENA_END >> 32) as u32, 3, 4),
        one(LOAD, IP_LOW_AT, 0, 0),
        one(AT_LEAST, low_start, 0, 1),
        one(AT_LEAST, low_end, 0, 1),
        allow(),
        one(RETURN, verdict, 0, 0),
    ]
}

/// What happens to a call whose number is a rule's.
fn leaf(when: When, low: LowText) -> Vec<sock_filter> {
    let (condition, verdict) = match when {
        When::Always => (vec![], libc::SECCOMP_RET_TRAP),
        When::Refuse(error) => (vec![], libc::SECCOMP_RET_ERRNO | error),
        When::Given(argument) => {
            let at = 16 + 8 * u32::from(argument);
            let condition = vec![
                one(LOAD, at, 0, 0),
                one(EQUAL, 0, 0, 3),
                one(LOAD, at + 4, 0, 0),
                one(EQUAL, 0, 0, 1),
                allow(),
            ];
            (condition, libc::SECCOMP_RET_TRAP)
        }
        When::Either(argument, first, second) => {
            let at = 16 + 8 * u32::from(argument);
            let condition = vec![
                one(LOAD, at, 0, 0),
                one(EQUAL, first, 2, 0),
                one(EQUAL, second, 1, 0),
                allow(),
            ];
            (condition, libc::SECCOMP_RET_TRAP)
        }
    };
    [condition, from_upper(low, verdict)].concat()
}

/// A binary search over sorted rules, the call's number being loaded.
fn search(rules: &[(i64, When)], low: LowText) -> Vec<sock_filter> {
    match rules {
        [] => vec![allow()],
        [(number, when)] => {
            let mut code = vec![one(EQUAL, *number as u32, 1, 0), allow()];
            code.extend(leaf(*when, low));
            code
        }
        _ => {
            let (left, right) = rules.split_at(rules.len() / 2);
            let left = search(left, low);
            let mut code = vec![
                one(AT_LEAST, right[0].0 as u32, 1, 0),
                // Jumps over the right part: `ja` has room for any distance.
                one(JUMP, 0, 0, 0),
            ];
            code.extend(search(right, low));
            code[1].k = code.len() as u32 - 2;
            code.extend(left);
            code
        }
    }
}

/// The whole program.
fn program(low: LowText) -> Vec<sock_filter> {
    let mut rules = RULES.to_vec();
    rules.sort_by_key(|(number, _)| *number);
    let mut code = vec![
        one(LOAD, ARCH_AT, 0, 0),
        one(EQUAL, AUDIT_ARCH_X86_64, 1, 0),
        allow(),
        one(LOAD, NUMBER_AT, 0, 0),
    ];
    code.extend(search(&rules, low));
    code
}

/// Traps, from now on, what the upper half calls, in every thread of the process and in what they start.
pub fn install(low: LowText) -> std::io::Result<()> {
    let mut code = program(low);
    let program = libc::sock_fprog {
        len: code.len() as u16,
        filter: code.as_mut_ptr(),
    };
    // SAFETY: prctl with these arguments touches no memory.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    // Without SPEC_ALLOW kernels before 5.16 switch on mitigations that slow the whole program down.
    let flags = libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW | libc::SECCOMP_FILTER_FLAG_TSYNC;
    // SAFETY: the program outlives the call, which copies it.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &raw const program,
        )
    };
    match result {
        0 => Ok(()),
        -1 => Err(std::io::Error::last_os_error()),
        thread => Err(std::io::Error::other(format!(
            "thread {thread} has a filter of its own"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the program as the kernel would.
    fn verdict(code: &[sock_filter], number: i64, ip: u64, arguments: [u64; 6]) -> u32 {
        let mut data = vec![];
        data.extend((number as u32).to_ne_bytes());
        data.extend(AUDIT_ARCH_X86_64.to_ne_bytes());
        data.extend(ip.to_ne_bytes());
        arguments
            .iter()
            .for_each(|argument| data.extend(argument.to_ne_bytes()));
        let (mut at, mut accumulator) = (0, 0u32);
        loop {
            let step = &code[at];
            let jump = |taken: bool| at + 1 + usize::from(if taken { step.jt } else { step.jf });
            at = match step.code {
                LOAD => {
                    let from = step.k as usize;
                    accumulator = u32::from_ne_bytes(data[from..from + 4].try_into().unwrap());
                    at + 1
                }
                JUMP => at + 1 + step.k as usize,
                EQUAL => jump(accumulator == step.k),
                AT_LEAST => jump(accumulator >= step.k),
                RETURN => return step.k,
                other => panic!("unknown instruction {other:#x}"),
            };
        }
    }

    const UPPER: u64 = ARENA_START as u64 + 0x1234;
    const LOWER: u64 = 0x5555_5555_0000;

    #[test]
    fn every_rule_traps_the_upper_half_and_never_the_lower() {
        let code = program(None);
        assert!(code.len() < 4096);
        for (number, when) in RULES {
            let arguments = match when {
                When::Either(argument, first, _) => {
                    let mut arguments = [0; 6];
                    arguments[usize::from(*argument)] = u64::from(*first);
                    arguments
                }
                _ => [1 << 40; 6],
            };
            let expected = match when {
                When::Refuse(error) => libc::SECCOMP_RET_ERRNO | error,
                _ => libc::SECCOMP_RET_TRAP,
            };
            assert_eq!(
                verdict(&code, *number, UPPER, arguments),
                expected,
                "call {number}"
            );
            assert_eq!(
                verdict(&code, *number, ARENA_END as u64 - 1, arguments),
                expected
            );
            for ip in [LOWER, 0x40_1000, ARENA_END as u64, ARENA_START as u64 - 1] {
                assert_eq!(
                    verdict(&code, *number, ip, arguments),
                    libc::SECCOMP_RET_ALLOW,
                    "call {number}"
                );
            }
        }
    }

    #[test]
    fn calls_that_are_not_in_the_table_are_never_trapped() {
        let code = program(Some((0x40_0000, 0x50_0000)));
        let trapped: Vec<i64> = RULES.iter().map(|(number, _)| *number).collect();
        for number in (0..470).filter(|number| !trapped.contains(number)) {
            assert_eq!(
                verdict(&code, number, UPPER, [1; 6]),
                libc::SECCOMP_RET_ALLOW
            );
        }
    }

    #[test]
    fn an_argument_that_is_absent_means_no_trap() {
        let code = program(None);
        assert_eq!(
            verdict(&code, libc::SYS_ppoll, UPPER, [9, 9, 9, 0, 9, 9]),
            libc::SECCOMP_RET_ALLOW
        );
        assert_eq!(
            verdict(
                &code,
                libc::SYS_fcntl,
                UPPER,
                [3, libc::F_GETFL as u64, 0, 0, 0, 0]
            ),
            libc::SECCOMP_RET_ALLOW
        );
    }

    #[test]
    fn low_text_is_trapped_only_where_it_was_asked_for() {
        let code = program(Some((0x40_0000, 0x50_0000)));
        assert_eq!(
            verdict(&code, libc::SYS_mmap, 0x40_0000, [0; 6]),
            libc::SECCOMP_RET_TRAP
        );
        assert_eq!(
            verdict(&code, libc::SYS_mmap, 0x4f_ffff, [0; 6]),
            libc::SECCOMP_RET_TRAP
        );
        assert_eq!(
            verdict(&code, libc::SYS_mmap, 0x50_0000, [0; 6]),
            libc::SECCOMP_RET_ALLOW
        );
        assert_eq!(
            verdict(&code, libc::SYS_mmap, 0x3f_ffff, [0; 6]),
            libc::SECCOMP_RET_ALLOW
        );
        assert_eq!(
            verdict(&code, libc::SYS_mmap, UPPER, [0; 6]),
            libc::SECCOMP_RET_TRAP
        );
    }
}
