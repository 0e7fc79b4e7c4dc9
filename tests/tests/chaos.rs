//! Any two or three of the features in `tests/programs/chaos`, in one program, suspended and restarted. A seed chooses them,
//! and is the name of its test, so that a failing one can be run again by itself:
//!
//! ```text
//! cargo test --release -p stillpoint-tests --test chaos                             the first few seeds
//! STILLPOINT_CHAOS_SEEDS=1..101 cargo test --release -p stillpoint-tests --test chaos   a hundred, 250 features
//! STILLPOINT_CHAOS_FEATURES=lock_by_flock,counter cargo test ... --test chaos           these
//! ```
//!
//! Either the suspend succeeds, and everything is there after the restart, or it is refused with a word of a feature that
//! cannot be carried, and the program runs on.

use std::ops::Range;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use stillpoint_tests::chaos::{self, Feature};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::seed::Seed;

const SEEDS: Range<u64> = 1..13;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    match tests() {
        Ok(tests) => libtest_mimic::run(&arguments, tests).exit_code(),
        Err(failed) => {
            eprintln!("{failed}");
            ExitCode::FAILURE
        }
    }
}

fn tests() -> Result<Vec<Trial>, String> {
    let program = Program::named(Kind::Special, "chaos")?;
    let features = chaos::features(&program)?;
    let test = |name: String, chosen: Vec<Feature>| {
        let program = program.clone();
        Trial::test(name, move || {
            chaos::together(&program, &chosen).map_err(Failed::from)
        })
    };
    if let Ok(names) = std::env::var("STILLPOINT_CHAOS_FEATURES") {
        let chosen = names
            .split(',')
            .map(|name| chaos::named(&features, name))
            .collect::<Result<_, _>>()?;
        return Ok(vec![test(names, chosen)]);
    }
    let seeds = match std::env::var("STILLPOINT_CHAOS_SEEDS") {
        Ok(text) => {
            Seed::range(&text).ok_or("STILLPOINT_CHAOS_SEEDS is a number or a range like 1..101")?
        }
        Err(_) => SEEDS,
    };
    Ok(seeds
        .map(|number| {
            let chosen = chaos::choose(&features, &mut Seed::from(number));
            test(format!("seed_{number}"), chosen)
        })
        .collect())
}
