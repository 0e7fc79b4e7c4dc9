//! Everything that a program holds in the kernel and that cannot be carried refuses a checkpoint, each by its name, and the
//! program runs on.

use std::fs;

use stillpoint_tests::command::{self, exit};
use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::turn::Turn;
use stillpoint_tests::{Failed, ensure};

/// What any kernel lets any program hold.
const EVERYWHERE: [&str; 4] = ["asynchronous I/O", "F_NOTIFY", "modify_ldt", "ptrace"];

#[test]
fn what_is_held_in_the_kernel_is_named() {
    let tested = (|| {
        let program = Program::named(Kind::Special, "held_in_the_kernel")?;
        let _turn = Turn::take()?;
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
        // Of the run before, if there was one.
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
