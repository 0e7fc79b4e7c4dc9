//! The seccomp filter: decides which system calls of the upper half are trapped.
//!
//! The program tests the call's number first and the instruction pointer last, so that calls which are never trapped have a constant answer: the kernel keeps
//! those in a bitmap and does not run the program for them. All calls with one verdict share an end, which tests the instruction pointer, because the kernel
//! checks and translates every instruction whenever a filter is installed. The program is written by hand: seccomp libraries have no conditions on the
//! instruction pointer.

#[cfg(test)]
mod tests;

use libc::sock_filter;
use stillpoint_wrappers::gate::{ARENA_END, ARENA_START, CODE_END, LOW_END};

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

/// Addresses below 4 GiB from which calls are trapped too (a non-PIE executable's own text). Not all addresses below 4 GiB: helpers inherit the filter, and
/// many are linked there.
pub type LowText = Option<(u32, u32)>;

/// The first address of text that the high half of its address identifies.
pub const HIGH_TEXT: usize = 1 << 32;

/// The high half of an address.
const fn high(address: usize) -> u32 {
    (address >> 32) as u32
}

/// An instruction of the program, before the places of its ends are known.
#[derive(Clone, Copy)]
enum Step {
    Is(sock_filter),
    /// Goes on to the end of the calls with this verdict.
    End(u32),
}

const fn instruction(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

fn one(code: u16, k: u32, jt: u8, jf: u8) -> Step {
    Step::Is(instruction(code, k, jt, jf))
}

fn allow() -> Step {
    one(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0)
}

/// "Was the call made from the upper half?": `verdict` if so, else the call is allowed.
fn from_upper(low: LowText, verdict: u32) -> [sock_filter; 10] {
    let one = instruction;
    // An empty range matches nothing.
    let (low_start, low_end) = low.unwrap_or((0, 0));
    [
        one(LOAD, IP_HIGH_AT, 0, 0),
        one(AT_LEAST, high(ARENA_START), 0, 1),
        one(AT_LEAST, high(ARENA_END), 5, 6),
        one(AT_LEAST, high(CODE_END), 4, 0),
        one(AT_LEAST, high(HIGH_TEXT), 4, 0),
        one(LOAD, IP_LOW_AT, 0, 0),
        one(AT_LEAST, low_start, 0, 1),
        one(AT_LEAST, low_end, 0, 1),
        one(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0),
        one(RETURN, verdict, 0, 0),
    ]
}

/// A call's number, and when such calls are trapped or refused: the first case that holds counts.
type Rule = (i64, Vec<(When, Answer)>);

/// Returns the rules of a launch, sorted by number. `restarted`: the application's ids may differ from the kernel's.
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

/// Builds the verdict on a call from the upper half for which `when` holds; if it does not hold, the instructions behind these run next.
fn alternative((when, answer): (When, Answer)) -> Vec<Step> {
    let end = Step::End(verdict_of(answer));
    let over = 1;
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
        When::Outside(address, length) => vec![
            load(length, 4),
            one(EQUAL, 0, 0, 4),
            load(address, 4),
            one(AT_LEAST, high(ARENA_END) - 1, 2, 0),
            one(AT_LEAST, high(ARENA_START), 1 + over, 0),
            one(AT_LEAST, high(LOW_END) - 1, 0, over),
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
        When::AmongGiven(argument, values, given) => {
            let mut code = vec![load(argument, 0)];
            let given = [
                load(given, 0),
                one(EQUAL, 0, 0, 2),
                load(given, 4),
                one(EQUAL, 0, over, 0),
            ];
            for (value, left) in values.iter().zip((0..values.len() as u8).rev()) {
                let missed = if left == 0 {
                    over + given.len() as u8
                } else {
                    0
                };
                code.push(one(EQUAL, *value, left, missed));
            }
            code.extend(given);
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
    code.push(end);
    code
}

/// Builds a binary search over sorted rules, for a loaded call number.
fn search(rules: &[Rule]) -> Vec<Step> {
    match rules {
        [] => vec![allow()],
        [(number, cases)] => {
            let mut code = vec![one(EQUAL, *number as u32, 1, 0), allow()];
            code.extend(cases.iter().flat_map(|when| alternative(*when)));
            code.push(allow());
            code
        }
        _ => {
            let (left, right) = rules.split_at(rules.len() / 2);
            let (left, right_code) = (search(left), search(right));
            let mut code = vec![
                one(AT_LEAST, right[0].0 as u32, 1, 0),
                // Jumps over the right part: `ja` reaches any distance.
                one(JUMP, right_code.len() as u32, 0, 0),
            ];
            code.extend(right_code);
            code.extend(left);
            code
        }
    }
}

/// Builds the whole program. Calls outside the table fail with ENOSYS for the upper half: numbers of newer kernels, those of x32 (from 1 << 30 on), and the
/// 32-bit calls of `int 0x80`.
fn program(low: LowText, restarted: bool) -> Vec<sock_filter> {
    let unknown = Step::End(libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32);
    let mut code = vec![
        one(LOAD, ARCH_AT, 0, 0),
        one(EQUAL, AUDIT_ARCH, 1, 0),
        unknown,
        one(LOAD, NUMBER_AT, 0, 0),
        one(AT_LEAST, table::END as u32, 0, 1),
        unknown,
    ];
    code.extend(search(&of_launch(restarted)));
    with_ends(&code, low)
}

/// The program with an end for every verdict behind it.
fn with_ends(code: &[Step], low: LowText) -> Vec<sock_filter> {
    let mut verdicts = vec![];
    let mut place_of = |verdict: u32| {
        let known = verdicts.iter().position(|known| *known == verdict);
        known.unwrap_or_else(|| {
            verdicts.push(verdict);
            verdicts.len() - 1
        })
    };
    let length = |ends: usize| ends * from_upper(low, 0).len();
    let mut program: Vec<sock_filter> = code
        .iter()
        .enumerate()
        .map(|(at, step)| match *step {
            Step::Is(instruction) => instruction,
            Step::End(verdict) => {
                let end = code.len() + length(place_of(verdict));
                instruction(JUMP, (end - at - 1) as u32, 0, 0)
            }
        })
        .collect();
    let ends = verdicts.iter().map(|verdict| from_upper(low, *verdict));
    program.extend(ends.flatten());
    program
}

/// From now on traps the upper half's calls in every thread of the process and in its children. `restarted`: the application's ids may differ from the
/// kernel's.
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
    // SAFETY: the kernel copies the filter, whose structure and program live until the call returns.
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
