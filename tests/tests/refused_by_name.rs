//! Each kernel resource of a program that cannot be carried refuses a checkpoint by its name, and the program runs on.

use std::fs;

use stillpoint_refusals::Code;
use stillpoint_tests::command::{self, exit};
use stillpoint_tests::job::Job;
use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::{Failed, ensure};

/// Resources that any kernel lets any program hold.
const EVERYWHERE: [&str; 4] = ["asynchronous I/O", "F_NOTIFY", "modify_ldt", "ptrace"];

#[test]
fn what_is_held_in_the_kernel_is_named() {
    let tested = (|| {
        let program = Program::named(Kind::Special, "held_in_the_kernel")?;
        Directory::new("held-in-the-kernel")?.run(|directory| {
            let trial = Trial::new(&program, 1, directory)?;
            let natively = held(&trial, false)?;
            let split = held(&trial, true)?;
            ensure!(natively == split, "natively {natively}, here {split}");
            for word in EVERYWHERE {
                ensure!(split.lines().any(|held| held == word), "{word} is not held");
            }
            Ok(())
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

fn held(trial: &Trial, split: bool) -> Result<String, Failed> {
    for name in ["held", "go", "ready.0"] {
        // The files of an earlier run, if there was one.
        let _ = fs::remove_file(trial.directory.file(name));
    }
    let mut job = match split {
        true => trial.split()?,
        false => trial.native()?,
    };
    trial.ready(&mut job)?;
    let path = trial.directory.file("held");
    let held = fs::read_to_string(path).map_err(|error| error.to_string())?;
    if split {
        let answer = command::suspend(trial.directory, &trial.epochs_at())?;
        let answer = answer.expect_reason(exit::REFUSED, "child process")?;
        for word in held.lines() {
            ensure!(
                answer.show().contains(word),
                "{word} is not named: {}",
                answer.show()
            );
        }
    }
    trial.go()?;
    trial.ends_well(job)?;
    Ok(held)
}

/// The fate of a kernel resource at a checkpoint.
enum Becomes {
    Carried,
    /// A checkpoint is refused for this reason.
    Refused(Code),
}

/// Runs `holds_one` with that argument. Natively it uses its resource. Under Stillpoint it must use the resource too, after a checkpoint that is refused by its
/// name, or after a restart. If the machine does not provide the resource, Stillpoint must not either.
fn one(thing: &str, becomes: Becomes) {
    let tested = (|| {
        let program = Program::named(Kind::Special, "holds_one")?;
        Directory::new(&format!("holds-{thing}"))?.run(|directory| {
            let trial = Trial::new(&program, 1, directory)?.with(&[thing]);
            let mut job = trial.native()?;
            let natively = told(&trial, &mut job)?;
            trial.go()?;
            trial.ends_well(job)?;
            anew(&trial);
            let mut job = trial.split()?;
            let split = told(&trial, &mut job)?;
            ensure!(natively == split, "natively {natively}, here {split}");
            match becomes {
                Becomes::Refused(code) if natively == "held" => {
                    let answer = command::suspend(trial.directory, &trial.epochs_at())?;
                    answer.expect_code(exit::REFUSED, code)?;
                }
                _ => {
                    trial.suspended(job)?;
                    job = trial.restarted()?;
                    trial.runs_again(&mut job)?;
                }
            }
            trial.go()?;
            trial.ends_well(job).map(drop)
        })
    })();
    if let Err(failed) = tested {
        panic!("{thing}: {failed}");
    }
}

/// Removes the files of an earlier run.
fn anew(trial: &Trial) {
    for name in ["held", "go", "ready.0", "made-for-the-watch"] {
        let _ = fs::remove_file(trial.directory.file(name));
    }
}

/// Returns the program's line about its resource.
fn told(trial: &Trial, job: &mut Job) -> Result<String, Failed> {
    trial.ready(job)?;
    let path = trial.directory.file("held");
    let held = fs::read_to_string(path).map_err(|error| error.to_string())?;
    Ok(held.trim_end().to_owned())
}

#[test]
fn rings_queues_and_other_processes_are_named() {
    one("io_uring", Becomes::Refused(Code::AnonymousInode));
    one("message_queue", Becomes::Refused(Code::MessageQueue));
    one("pidfd", Becomes::Refused(Code::AnonymousInode));
    one("vsock", Becomes::Refused(Code::OpenSocket));
}

#[test]
fn what_watches_the_program_itself_is_named() {
    one("perf_event", Becomes::Refused(Code::AnonymousInode));
    one("userfaultfd", Becomes::Refused(Code::AnonymousInode));
    one("landlock_rules", Becomes::Refused(Code::AnonymousInode));
    one("fanotify", Becomes::Refused(Code::AnonymousInode));
    one("bpf_map", Becomes::Refused(Code::AnonymousInode));
}

#[test]
fn events_that_nobody_has_read_are_named_and_signals_are_carried() {
    one("inotify_unread", Becomes::Refused(Code::UnreadEvents));
    one("signalfd_waiting", Becomes::Carried);
}

#[test]
fn memory_of_its_own_kind_is_carried_or_named() {
    one("huge_private", Becomes::Carried);
    one("huge_shared", Becomes::Carried);
    one("huge_file", Becomes::Refused(Code::HugePagesFile));
    one("memory_secret", Becomes::Refused(Code::SecretMemory));
}

#[test]
fn timers_that_have_gone_off_too_often_or_tell_by_a_thread_go_on() {
    one("timer_overrun", Becomes::Carried);
    one("timer_thread", Becomes::Carried);
}
