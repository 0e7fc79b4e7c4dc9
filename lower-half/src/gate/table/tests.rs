use std::collections::BTreeMap;

use super::*;

/// Names and numbers of the kernel's own headers that are installed here.
fn headers() -> BTreeMap<i64, String> {
    let text = std::fs::read_to_string("/usr/include/x86_64-linux-gnu/asm/unistd_64.h").unwrap();
    let line = |line: &str| {
        let (name, number) = line.strip_prefix("#define __NR_")?.split_once(' ')?;
        Some((number.trim().parse().ok()?, name.to_owned()))
    };
    text.lines().filter_map(line).collect()
}

#[test]
fn the_kernels_headers_have_the_same_calls() {
    let headers = headers();
    assert!(headers.len() > 350);
    for (number, name) in headers {
        let ours = entry(number).map(|entry| entry.name);
        assert_eq!(ours, Some(name.as_str()), "number {number}");
    }
    for missing in [335, 423, END, -1] {
        assert!(entry(missing).is_none());
    }
}

#[test]
fn numbers_that_the_c_library_knows_are_those_of_the_table() {
    for (number, name) in [
        (libc::SYS_read, "read"),
        (libc::SYS_recvmmsg, "recvmmsg"),
        (libc::SYS_rseq, "rseq"),
        (libc::SYS_io_uring_setup, "io_uring_setup"),
        (libc::SYS_mseal, "mseal"),
    ] {
        assert_eq!(entry(number).map(|entry| entry.name), Some(name));
    }
}

/// Whatever makes a descriptor tells the gate so, in every launch, whatever else its arguments are.
#[test]
fn what_makes_a_descriptor_is_noted() {
    let makers = all().filter(|entry| entry.class == Class::MakesDescriptor);
    for entry in makers {
        let noted = |rule: &Rule| !rule.restarted && matches!(rule.answer, Answer::By(_));
        assert!(entry.rules().iter().any(noted), "{}", entry.name);
        let always = entry
            .rules()
            .iter()
            .any(|rule| matches!(rule.when, When::Always));
        let sometimes = ["bpf", "landlock_create_ruleset"].contains(&entry.name);
        assert!(always || sometimes, "{}", entry.name);
    }
}

#[test]
fn commands_are_in_order_and_named_once() {
    for list in [commands::PRCTL, commands::ARCH_PRCTL] {
        assert!(list.is_sorted_by(|one, other| one.number < other.number));
    }
}

/// `tests/programs/bad_pointers.h` gives bad pointers to every trapped call, or says that there is none to give.
#[test]
fn bad_pointers_are_tried_on_every_trapped_call() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../tests/programs/bad_pointers.h"
    );
    let text = std::fs::read_to_string(path).unwrap();
    let words: std::collections::BTreeSet<&str> = text
        .split(|byte: char| !byte.is_ascii_alphanumeric() && byte != '_')
        .collect();
    let missing: Vec<_> = all()
        .filter(|entry| !entry.rules().is_empty() && !words.contains(entry.name))
        .map(|entry| entry.name)
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
