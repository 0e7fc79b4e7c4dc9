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

/// System calls of 64-bit processors that Linux has supported recently, such as aarch64: calls that have not been replaced.
fn generic() -> Vec<String> {
    let text = std::fs::read_to_string("/usr/include/asm-generic/unistd.h").unwrap();
    let wide = text.split("#define __NR_fcntl64").next().unwrap();
    let defined = |line: &str| {
        let mut words = line.strip_prefix("#define __NR")?.split_whitespace();
        Some((words.next()?.to_owned(), words.next()?.to_owned()))
    };
    let numbers: BTreeMap<String, String> = wide.lines().filter_map(defined).collect();
    let counts = |(name, number): &(&String, &String)| {
        let number = match number.strip_prefix("__NR") {
            // On 32-bit processors, `fstat` has another name.
            Some(wide) => numbers.get(wide),
            None => Some(*number),
        };
        let number: Option<u32> = number.and_then(|number| number.parse().ok());
        let narrow = number.is_none_or(|number| (403..424).contains(&number));
        let other = ["_sync_file_range2", "_arch_specific_syscall", "_syscalls"];
        !narrow && !name.starts_with("3264") && !other.contains(&name.as_str())
    };
    let names = numbers.iter().filter(counts);
    names.map(|(name, _)| name[1..].to_owned()).collect()
}

#[test]
fn the_table_knows_the_calls_of_every_processor() {
    let names = generic();
    assert!(names.len() > 290, "{}", names.len());
    for name in names {
        assert!(find(entries::EVERYWHERE, &name).is_some(), "{name}");
        assert!(
            find(processor_specific::SOMEWHERE, &name).is_none(),
            "{name}"
        );
    }
}

/// Source files below a folder, without those of `arch`.
fn sources(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("arch") {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn calls_of_some_processors_are_made_below_arch_only() {
    let mut files = Vec::new();
    let root = std::path::Path::new(env!("LOWER_HALF")).join("src");
    sources(&root, &mut files);
    assert!(files.len() > 150, "{}", files.len());
    let some: Vec<&str> = processor_specific::SOMEWHERE
        .iter()
        .map(|it| it.name)
        .collect();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let words = text.split(|byte: char| !byte.is_ascii_alphanumeric() && byte != '_');
        let mut calls = words.filter_map(|word| word.strip_prefix("SYS_"));
        let found = calls.find(|name| some.contains(name));
        assert_eq!(found, None, "{}", file.display());
    }
}

/// The table must not have calls that this processor lacks.
#[test]
fn every_line_of_the_table_is_a_call() {
    let names: std::collections::BTreeSet<&str> = all().map(|entry| entry.name).collect();
    let lines = entries::EVERYWHERE
        .iter()
        .chain(processor_specific::SOMEWHERE);
    let lines: Vec<&str> = lines.map(|meaning| meaning.name).collect();
    assert_eq!(lines.len(), names.len());
    assert!(lines.iter().all(|name| names.contains(name)));
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

/// Every call that makes a descriptor reports it to the gate, in every launch and for all other arguments.
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

/// The calls whose arguments the kernel declares as ids of processes, threads or groups.
#[test]
fn calls_that_take_an_id_are_answered_in_restarted_processes() {
    const TAKE_IDS: &str = "get_robust_list getpgid getpriority getsid ioprio_get ioprio_set kcmp kill migrate_pages move_pages perf_event_open pidfd_open \
        prlimit64 process_vm_readv process_vm_writev ptrace rt_sigqueueinfo rt_tgsigqueueinfo sched_getaffinity sched_getattr sched_getparam \
        sched_getscheduler sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam sched_setscheduler setpgid setpriority tgkill tkill wait4 waitid";
    for name in TAKE_IDS.split_whitespace() {
        let entry = all().find(|entry| entry.name == name);
        let id = [7, 7, 7, 0, 0, 0];
        let answered = |rule: &Rule| rule.when.holds(id) && matches!(rule.answer, Answer::By(_));
        let answered = entry.is_some_and(|entry| entry.rules().iter().any(answered));
        assert!(answered, "{name}");
    }
    let named = all().filter(|entry| entry.class == Class::Names);
    for entry in named {
        let clock = entry.name.starts_with("clock_");
        assert!(
            clock || TAKE_IDS.split_whitespace().any(|name| name == entry.name),
            "{}",
            entry.name
        );
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
    let path = concat!(env!("LOWER_HALF"), "/../tests/programs/bad_pointers.h");
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
