//! Unreadable memory, and address space that is limited from the start.

use std::fs;
use std::process::Command;
use std::time::Duration;

use stillpoint_tests::command::{self, exit};
use stillpoint_tests::job;
use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::{Failed, ensure};

const PATIENCE: Duration = Duration::from_secs(60);

fn tested(test: impl FnOnce() -> Result<(), Failed>) {
    if let Err(failed) = test() {
        panic!("{failed}");
    }
}

/// A broken page makes the checkpoint fail, with the page's address, but not the rank. This holds whether a child process with a snapshot of memory reads it,
/// or the rank itself.
#[test]
fn a_page_that_cannot_be_read_fails_the_checkpoint_by_name() {
    for copy in ["on", "off"] {
        tested(|| broken_page(copy));
    }
}

fn broken_page(copy: &'static str) -> Result<(), Failed> {
    let program = Program::named(Kind::Special, "broken_page")?;
    Directory::new("broken-page")?.run(|directory| {
        let mut trial = Trial::new(&program, 1, directory)?;
        trial.settings = vec![("STILLPOINT_COPY", copy)];
        let mut job = trial.split()?;
        let made = directory.file("made.0");
        job.until("having made it", PATIENCE, |_| made.exists())?;
        let answer = command::checkpoint(directory, &trial.epochs_at())?;
        // Kernels before 6.6 make no such page.
        match directory.file("none.0").exists() {
            true => answer.expect(exit::DONE)?,
            false => {
                let answer = answer.expect_reason(exit::FAILED, "cannot be read")?;
                answer.expect_reason(exit::FAILED, "memory without a name, mapped at 0x")?
            }
        };
        fs::write(directory.file("anew"), b"").map_err(|error| error.to_string())?;
        trial.ready(&mut job)?;
        trial.suspended(job)?;
        trial.go()?;
        trial.ends_well(trial.restarted()?)?;
        Ok(())
    })
}

/// Makes the same command under a shell's limit, in KiB.
fn limited(command: &Command, kibibytes: u32) -> Command {
    let mut limited = Command::new("sh");
    limited.args([
        "-c",
        &format!("ulimit -v {kibibytes} && exec \"$0\" \"$@\""),
    ]);
    limited.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    limited
}

/// Batch systems limit the address space. A limit that suffices natively suffices for a job that is suspended and
/// restarted.
#[test]
fn a_program_starts_and_is_carried_in_half_a_gigabyte_of_addresses() {
    tested(|| {
        let program = Program::named(Kind::Still, "allocated_memory")?;
        Directory::new("half-a-gigabyte")?.run(|directory| {
            let trial = Trial::new(&program, 2, directory)?;
            let mut command = job::under_stillpoint(2, &trial.epochs_at())?;
            command.arg(trial.executable());
            let mut job = trial.launch(limited(&command, 500 << 10))?;
            trial.ready(&mut job)?;
            command::checkpoint(directory, &trial.epochs_at())?.expect(exit::DONE)?;
            trial.suspended(job)?;
            trial.go()?;
            let again = limited(&job::restarted(2, &trial.epochs_at())?, 500 << 10);
            trial.ends_well(trial.launch(again)?)?;
            Ok(())
        })
    });
}

/// If the limit is too low, a line says so.
#[test]
fn too_few_addresses_are_a_line_that_says_so() {
    tested(|| {
        let program = Program::named(Kind::Still, "allocated_memory")?;
        Directory::new("too-few-addresses")?.run(|directory| {
            let trial = Trial::new(&program, 1, directory)?;
            let mut command = job::under_stillpoint(1, &trial.epochs_at())?;
            // The launcher needs more than that itself, so only the rank is limited.
            let words: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
            let place = words.iter().position(|word| word == "--");
            let place = place.ok_or("no program's place")? - 4;
            let mut command_in_shell = Command::new(command.get_program());
            command_in_shell.args(&words[..place]);
            command_in_shell.args(["sh", "-c", "ulimit -v 60000 && exec \"$0\" \"$@\""]);
            command_in_shell
                .args(&words[place..])
                .arg(trial.executable());
            for (name, value) in command.get_envs() {
                command_in_shell.envs(value.map(|value| (name, value)));
            }
            command = command_in_shell;
            let ended = trial.launch(command)?.end(PATIENCE)?;
            let needle = "its address space is limited to 58 MiB (RLIMIT_AS, ulimit -v)";
            ensure!(
                ended.status != 0 && ended.stderr.contains(needle),
                "{}",
                ended.show()
            );
            Ok(())
        })
    });
}
