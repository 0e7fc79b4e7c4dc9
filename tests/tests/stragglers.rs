//! Random rows of collective operations in which one rank computes until it has been checkpointed, suspended and restarted twice: no checkpoint waits for it.
//! A seed decides the operations and the number of ranks; it is the name of its test.
//!
//! ```text
//! cargo test --release -p stillpoint-tests --test stragglers                                   the first few seeds
//! STILLPOINT_STRAGGLER_SEEDS=1..201 cargo test --release -p stillpoint-tests --test stragglers   two hundred
//! ```

use std::ops::Range;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use stillpoint_tests::command::{self, exit};
use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::seed::Seed;
use stillpoint_tests::trial;

const SEEDS: Range<u64> = 1..6;

/// The number of ranks: 2 to 8.
fn ranks(seed: u64) -> u32 {
    2 + (seed % 7) as u32
}

fn nobody_waits(program: &Program, seed: u64) -> Result<(), stillpoint_tests::Failed> {
    Directory::new(&format!("straggler-{seed}"))?.run(|directory| {
        let number = seed.to_string();
        let trial = trial::Trial::new(program, ranks(seed), directory)?.with(&[&number]);
        let mut job = trial.split()?;
        trial.ready(&mut job)?;
        command::checkpoint(trial.directory, &trial.epochs_at())?.expect(exit::DONE)?;
        trial.suspended(job)?;
        trial.suspended(trial.resumed()?)?;
        let job = trial.restarted()?;
        trial.go()?;
        trial.ends_well(job)?;
        Ok(())
    })
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let seeds = match std::env::var("STILLPOINT_STRAGGLER_SEEDS") {
        Ok(text) => Seed::range(&text),
        Err(_) => Some(SEEDS),
    };
    let program = Program::named(Kind::Special, "random_straggler");
    let (seeds, program) = match (seeds, program) {
        (Some(seeds), Ok(program)) => (seeds, program),
        (None, _) => {
            eprintln!("STILLPOINT_STRAGGLER_SEEDS is a number or a range like 1..201");
            return ExitCode::FAILURE;
        }
        (_, Err(failed)) => {
            eprintln!("{failed}");
            return ExitCode::FAILURE;
        }
    };
    let test = |seed: u64| {
        let program = program.clone();
        Trial::test(format!("seed_{seed}"), move || {
            nobody_waits(&program, seed).map_err(Failed::from)
        })
    };
    let tests = seeds.map(test).collect();
    libtest_mimic::run(&arguments, tests).exit_code()
}
