//! Random programs, checkpointed and restarted at random moments. A seed decides the program, the number of ranks and the
//! moments; it is the name of its test, so that a failing one can be run again by itself:
//!
//! ```text
//! cargo test --release -p stillpoint-tests --test random                               the first few seeds
//! STILLPOINT_RANDOM_SEEDS=1..201 cargo test --release -p stillpoint-tests --test random  two hundred
//! STILLPOINT_RANDOM_SEEDS=77 cargo test --release -p stillpoint-tests --test random      one of them again
//! ```

use std::ops::Range;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::seed::Seed;
use stillpoint_tests::trial;

const SEEDS: Range<u64> = 1..7;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let seeds = match std::env::var("STILLPOINT_RANDOM_SEEDS") {
        Ok(text) => Seed::range(&text),
        Err(_) => Some(SEEDS),
    };
    let program = Program::named(Kind::Special, "random_program");
    let (seeds, program) = match (seeds, program) {
        (Some(seeds), Ok(program)) => (seeds, program),
        (None, _) => {
            eprintln!("STILLPOINT_RANDOM_SEEDS is a number or a range like 1..201");
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
            trial::random(&program, seed).map_err(Failed::from)
        })
    };
    let tests = seeds.map(test).collect();
    libtest_mimic::run(&arguments, tests).exit_code()
}
