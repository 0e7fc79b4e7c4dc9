//! The seccomp filter: which system calls are trapped when they are made from the upper half.
//!
//! The program tests the call's number first and the instruction pointer last, so that calls which are never
//! trapped have a constant answer: the kernel keeps those in a bitmap and does not run the program for
//! them. Written by hand because seccomp libraries have no conditions on the instruction pointer.

use libc::sock_filter;
use stillpoint_wrappers::gate::{ARENA_END, ARENA_START, LOW_END};

use super::table::{self, Answer, When};
use crate::arch::AUDIT_ARCH;

const NUMBER_AT: u32 = 0;
const ARCH_AT: u32 = 4;
const IP_LOW_AT: u32 = 8;
const IP_HIGH_AT: u32 = 12;

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const JUMP: u16 = (libc::BPF_JMP | libc::BPF_JA) as u16;
const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const ANY_BIT: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// Addresses below 4 GiB from which calls are trapped too (a non-PIE executable's own text). Not all below 4 GiB: helpers inherit the
/// filter, and many are linked at such addresses.
pub type LowText = Option<(u32, u32)>;

/// The first address of text that is known by the high half of its addresses.
pub const HIGH_TEXT: usize = 1 << 32;

/// The high half of an address.
const fn high(address: usize) -> u32 {
    (address >> 32) as u32
}

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
        one(AT_LEAST, high(ARENA_START), 0, 1),
        one(AT_LEAST, high(ARENA_END), 5, 6),
        one(AT_LEAST, high(LOW_END), 4, 0),
        one(AT_LEAST, high(HIGH_TEXT), 4, 0),
        one(LOAD, IP_LOW_AT, 0, 0),
        one(AT_LEAST, low_start, 0, 1),
        one(AT_LEAST, low_end, 0, 1),
        allow(),
        one(RETURN, verdict, 0, 0),
    ]
}

/// A call's number, and when such calls are trapped, or refused: the first case that holds counts.
type Rule = (i64, Vec<(When, Answer)>);

/// The rules of a launch, sorted by number. `restarted`: ids that the application knows may not be the kernel's.
fn of_launch(restarted: bool) -> Vec<Rule> {
    let cases = |entry: &table::Entry| {
        let rules = entry.rules().iter();
        rules
            .filter(|rule| restarted || !rule.restarted)
            .map(|rule| (rule.when, rule.answer))
            .collect::<Vec<_>>()
    };
    table::all()
        .map(|entry| (entry.number, cases(entry)))
        .filter(|(_, cases)| !cases.is_empty())
        .collect()
}

fn verdict_of(answer: Answer) -> u32 {
    match answer {
        Answer::By(_) => libc::SECCOMP_RET_TRAP,
        Answer::Error(error) => libc::SECCOMP_RET_ERRNO | error,
    }
}

/// The verdict on a call from the upper half for which `when` holds; where it does not hold, the instructions behind these
/// are next.
fn alternative((when, answer): (When, Answer), low: LowText) -> Vec<sock_filter> {
    let verdict = from_upper(low, verdict_of(answer));
    let over = verdict.len() as u8;
    let load = |argument: u8, half: u32| one(LOAD, 16 + 8 * u32::from(argument) + half, 0, 0);
    let mut code = match when {
        When::Always => vec![],
        When::Given(argument) => vec![
            load(argument, 0),
            one(EQUAL, 0, 0, 2),
            load(argument, 4),
            one(EQUAL, 0, over, 0),
        ],
        When::Elsewhere(argument) => vec![
            load(argument, 4),
            one(AT_LEAST, high(ARENA_START), 0, 1),
            one(AT_LEAST, high(ARENA_END), 1, over + 1),
            one(AT_LEAST, high(LOW_END), 0, over),
        ],
        When::Negative(argument) => {
            vec![load(argument, 0), one(AT_LEAST, 1 << 31, 0, over)]
        }
        When::Among(argument, values) => {
            let mut code = vec![load(argument, 0)];
            for (value, left) in values.iter().zip((0..values.len() as u8).rev()) {
                let missed = if left == 0 { over } else { 0 };
                code.push(one(EQUAL, *value, left, missed));
            }
            code
        }
        When::Beyond(argument, values) => {
            let mut code = vec![load(argument, 0)];
            for (value, left) in values.iter().zip((0..values.len() as u8).rev()) {
                code.push(one(EQUAL, *value, left + over, 0));
            }
            code
        }
        When::Without(argument, bit) => vec![load(argument, 0), one(ANY_BIT, bit, over, 0)],
    };
    code.extend(verdict);
    code
}

/// A binary search over sorted rules, the call's number being loaded.
fn search(rules: &[Rule], low: LowText) -> Vec<sock_filter> {
    match rules {
        [] => vec![allow()],
        [(number, cases)] => {
            let mut code = vec![one(EQUAL, *number as u32, 1, 0), allow()];
            code.extend(cases.iter().flat_map(|when| alternative(*when, low)));
            code.push(allow());
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

/// The whole program. What is not in the table does not exist for the upper half: numbers that newer kernels may bring, x32's
/// (which begin at 1 << 30), and the 32-bit calls of `int 0x80`.
fn program(low: LowText, restarted: bool) -> Vec<sock_filter> {
    let unknown = from_upper(low, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32);
    let over = unknown.len() as u8;
    let mut code = vec![one(LOAD, ARCH_AT, 0, 0), one(EQUAL, AUDIT_ARCH, over, 0)];
    code.extend(&unknown);
    code.extend([
        one(LOAD, NUMBER_AT, 0, 0),
        one(AT_LEAST, table::END as u32, 0, over),
    ]);
    code.extend(&unknown);
    code.extend(search(&of_launch(restarted), low));
    code
}

/// Traps, from now on, what the upper half calls, in every thread of the process and in what they start.
/// `restarted`: ids that the application knows may not be the kernel's.
pub fn install(low: LowText, restarted: bool) -> std::io::Result<()> {
    let mut code = program(low, restarted);
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

    fn verdict(code: &[sock_filter], number: i64, ip: u64, arguments: [u64; 6]) -> u32 {
        verdict_by(code, AUDIT_ARCH, number, ip, arguments)
    }

    /// Runs the program as the kernel would.
    fn verdict_by(
        code: &[sock_filter],
        architecture: u32,
        number: i64,
        ip: u64,
        arguments: [u64; 6],
    ) -> u32 {
        let mut data = vec![];
        data.extend((number as u32).to_ne_bytes());
        data.extend(architecture.to_ne_bytes());
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
                ANY_BIT => jump(accumulator & step.k != 0),
                RETURN => return step.k,
                other => panic!("unknown instruction {other:#x}"),
            };
        }
    }

    const UPPER: u64 = ARENA_START as u64 + 0x1234;
    const LOWER: u64 = 0x5555_5555_0000;

    /// Arguments that a rule may depend on: each alone, with every value that some rule looks for and with others.
    fn trials() -> impl Iterator<Item = [u64; 6]> {
        let values = of_launch(true).into_iter().flat_map(|(_, cases)| cases);
        let mut values: Vec<u64> = values
            .flat_map(|(when, _)| match when {
                When::Among(_, values) | When::Beyond(_, values) => values.to_vec(),
                When::Without(_, bit) => vec![bit, !bit],
                _ => vec![],
            })
            .map(u64::from)
            .chain([0, 1, 1 << 31, 1 << 40, u64::MAX, 12345])
            .chain([LOW_END, ARENA_START, ARENA_END].map(|end| end as u64))
            .chain([LOW_END, ARENA_START, ARENA_END].map(|end| end as u64 - 1))
            .collect();
        values.sort_unstable();
        values.dedup();
        (0..6).flat_map(move |place| {
            let with = move |value: &u64| {
                let mut arguments = [0; 6];
                arguments[place] = *value;
                arguments
            };
            values.iter().map(with).collect::<Vec<_>>()
        })
    }

    #[test]
    fn the_program_does_what_the_table_says_and_nothing_to_the_lower_half() {
        let trials: Vec<_> = trials().collect();
        for restarted in [false, true] {
            let code = program(None, restarted);
            assert!(code.len() < 4096);
            let rules = of_launch(restarted);
            for (number, arguments) in table::all()
                .map(|entry| entry.number)
                .flat_map(|number| trials.iter().map(move |trial| (number, *trial)))
            {
                let cases = rules.iter().find(|(other, _)| *other == number);
                let holds = |(when, _): &&(When, Answer)| {
                    when.holds(arguments.map(|argument| argument as usize))
                };
                let first = cases.and_then(|(_, cases)| cases.iter().find(holds));
                let expected =
                    first.map_or(libc::SECCOMP_RET_ALLOW, |(_, answer)| verdict_of(*answer));
                for (ip, expected) in [
                    (UPPER, expected),
                    (ARENA_END as u64 - 1, expected),
                    (HIGH_TEXT as u64, expected),
                    (LOW_END as u64 - 1, expected),
                    (LOW_END as u64, libc::SECCOMP_RET_ALLOW),
                    (LOWER, libc::SECCOMP_RET_ALLOW),
                    (0x40_1000, libc::SECCOMP_RET_ALLOW),
                    (ARENA_END as u64, libc::SECCOMP_RET_ALLOW),
                    (ARENA_START as u64 - 1, libc::SECCOMP_RET_ALLOW),
                ] {
                    let found = verdict(&code, number, ip, arguments);
                    assert_eq!(
                        found, expected,
                        "call {number} with {arguments:x?} at {ip:#x}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_is_not_in_the_table_does_not_exist_above() {
        let code = program(None, false);
        let missing = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
        for number in [table::END, 10_000, 1 << 30, (1 << 30) + 41] {
            assert_eq!(verdict(&code, number, UPPER, [0; 6]), missing);
            let below = verdict(&code, number, LOWER, [0; 6]);
            assert_eq!(below, libc::SECCOMP_RET_ALLOW);
        }
        const AUDIT_ARCH_I386: u32 = 0x4000_0003;
        for (ip, expected) in [(UPPER, missing), (LOWER, libc::SECCOMP_RET_ALLOW)] {
            let found = verdict_by(&code, AUDIT_ARCH_I386, 5, ip, [0; 6]);
            assert_eq!(found, expected);
        }
    }

    /// The kernel's own test: a call that is allowed whatever its arguments are must be so before any of them, or the
    /// instruction pointer, is looked at. It then never runs the program for it.
    #[test]
    fn calls_without_rules_have_a_constant_answer() {
        for restarted in [false, true] {
            let code = program(Some((0x40_0000, 0x50_0000)), restarted);
            let rules = of_launch(restarted);
            for entry in table::all() {
                let trapped = rules.iter().any(|(number, _)| *number == entry.number);
                assert_eq!(constant(&code, entry.number), !trapped, "{}", entry.name);
            }
        }
    }

    fn constant(code: &[sock_filter], number: i64) -> bool {
        let (mut at, mut accumulator) = (0, 0u32);
        loop {
            let step = &code[at];
            let jump = |taken: bool| at + 1 + usize::from(if taken { step.jt } else { step.jf });
            at = match (step.code, step.k) {
                (LOAD, NUMBER_AT) => {
                    accumulator = number as u32;
                    at + 1
                }
                (LOAD, ARCH_AT) => {
                    accumulator = AUDIT_ARCH;
                    at + 1
                }
                (LOAD, _) => return false,
                (JUMP, over) => at + 1 + over as usize,
                (EQUAL, value) => jump(accumulator == value),
                (AT_LEAST, value) => jump(accumulator >= value),
                (RETURN, verdict) => return verdict == libc::SECCOMP_RET_ALLOW,
                (other, _) => panic!("unknown instruction {other:#x}"),
            };
        }
    }

    #[test]
    fn ids_are_the_kernels_until_a_restart() {
        let before = program(None, false);
        let after = program(None, true);
        let owner = [3, libc::F_SETOWN as u64, 7, 0, 0, 0];
        for (number, arguments) in [
            (libc::SYS_getpid, [0; 6]),
            (libc::SYS_getpriority, [0, 7, 0, 0, 0, 0]),
            (libc::SYS_sched_getattr, [7, 0, 0, 0, 0, 0]),
            (libc::SYS_fcntl, owner),
        ] {
            let found = [&before, &after].map(|code| verdict(code, number, UPPER, arguments));
            assert_eq!(found, [libc::SECCOMP_RET_ALLOW, libc::SECCOMP_RET_TRAP]);
        }
    }

    #[test]
    fn an_argument_that_is_absent_means_no_trap() {
        let code = program(None, true);
        for number in [libc::SYS_clock_gettime, libc::SYS_sched_getattr] {
            assert_eq!(
                verdict(&code, number, UPPER, [0, 9, 9, 9, 9, 9]),
                libc::SECCOMP_RET_ALLOW
            );
        }
        for address in [0, LOW_END - 1, ARENA_START, ARENA_END - 1] {
            let found = verdict(
                &code,
                libc::SYS_munmap,
                UPPER,
                [address as u64, 0, 0, 0, 0, 0],
            );
            assert_eq!(found, libc::SECCOMP_RET_ALLOW, "munmap at {address:#x}");
        }
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
        let code = program(Some((0x40_0000, 0x50_0000)), false);
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
