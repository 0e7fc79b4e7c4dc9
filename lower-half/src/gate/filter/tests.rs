//! Tests of the filter's program, run as the kernel would run it.

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
        .chain([LOW_END, ARENA_END].map(|end| end as u64 - HIGH_TEXT as u64 - 1))
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
            let expected = first.map_or(libc::SECCOMP_RET_ALLOW, |(_, answer)| verdict_of(*answer));
            for (ip, expected) in [
                (UPPER, expected),
                (ARENA_END as u64 - 1, expected),
                (HIGH_TEXT as u64, expected),
                (CODE_END as u64 - 1, expected),
                (CODE_END as u64, libc::SECCOMP_RET_ALLOW),
                (LOW_END as u64 - 1, libc::SECCOMP_RET_ALLOW),
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

/// The kernel's own condition: a call that is allowed for all arguments must be allowed before the program reads an argument or the instruction pointer. The
/// kernel then never runs the program for it.
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
    for address in [
        0,
        LOW_END - HIGH_TEXT - 1,
        ARENA_START,
        ARENA_END - HIGH_TEXT - 1,
    ] {
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
fn ranges_that_may_reach_beyond_the_upper_half_are_trapped() {
    let code = program(None, false);
    let room = HIGH_TEXT as u64;
    for (address, length, trapped) in [
        (0x10_0000, room - 1, false),
        (0x10_0000, room, true),
        (LOW_END as u64 - 0x1000, 0x2000, true),
        (LOW_END as u64, 1, true),
        (ARENA_START as u64 - 1, 1, true),
        (ARENA_START as u64, 0x1000, false),
        (ARENA_END as u64 - 2 * room, room - 1, false),
        (ARENA_END as u64 - 0x1000, 0x2000, true),
        (u64::MAX, 1, true),
    ] {
        for number in [libc::SYS_munmap, libc::SYS_mprotect, libc::SYS_msync] {
            let found = verdict(&code, number, UPPER, [address, length, 0, 0, 0, 0]);
            let expected = match trapped {
                true => libc::SECCOMP_RET_TRAP,
                false => libc::SECCOMP_RET_ALLOW,
            };
            assert_eq!(found, expected, "{address:#x}, {length:#x}");
        }
    }
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
