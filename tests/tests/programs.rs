//! Every program of `tests/programs`, in every kind of trial. The tests are made from the list of files:
//! `still::iallreduce_pending::2_ranks::restarts`, `still::blocking_collectives::2_ranks::barrier::restarts`.

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use stillpoint_tests::program::{CLOCK, Kind, Program};
use stillpoint_tests::trial;

type Way = fn(&Program, u32) -> Result<(), String>;

const STILL: &[(&str, Way)] = &[
    ("natively", trial::natively),
    ("undisturbed", trial::undisturbed),
    ("carries_on", trial::carries_on),
    ("restarts", trial::restarts),
];
/// These programs run undisturbed before the first checkpoint and after the last restart.
const MOVING: &[(&str, Way)] = &[("natively", trial::natively), ("moves", trial::moves)];
/// These run undisturbed before and after a refused checkpoint.
const REFUSED: &[(&str, Way)] = &[("natively", trial::natively), ("refuses", trial::refuses)];

/// Returns every number of ranks with every way to a still point.
fn cases(program: &Program) -> impl Iterator<Item = (u32, String)> {
    let states = &program.safe_states;
    let ranks = program.ranks.iter();
    ranks.flat_map(move |ranks| states.iter().map(move |state| (*ranks, state.clone())))
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut tests = vec![];
    for (kind, folder, ways) in [
        (Kind::Still, "still", STILL),
        (Kind::Moving, "moving", MOVING),
        (Kind::Refused, "refused", REFUSED),
    ] {
        let programs = match Program::all(kind) {
            Ok(programs) => programs,
            Err(failed) => {
                eprintln!("{failed}");
                return ExitCode::FAILURE;
            }
        };
        for program in programs {
            for (number, (ranks, safe_state)) in cases(&program).enumerate() {
                for &(way, test) in ways {
                    // The end without a checkpoint does not depend on the number of ranks.
                    if way == "undisturbed" && number > 0 {
                        continue;
                    }
                    let case = match safe_state.as_str() {
                        CLOCK => format!("{ranks}_ranks"),
                        other => format!("{ranks}_ranks::{other}"),
                    };
                    let name = format!("{folder}::{}::{case}::{way}", program.name);
                    let program = program.towards(&safe_state);
                    tests.push(Trial::test(name, move || {
                        test(&program, ranks).map_err(Failed::from)
                    }));
                }
            }
        }
    }
    libtest_mimic::run(&arguments, tests).exit_code()
}
