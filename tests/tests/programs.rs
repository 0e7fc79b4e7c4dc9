//! Every program of `tests/programs`, in every way that it can be treated. The tests are made from the list of
//! files: `still::iallreduce_pending::2_ranks::restarts`.

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial;

type Way = fn(&Program, u32) -> Result<(), String>;

const STILL: &[(&str, Way)] = &[
    ("natively", trial::natively),
    ("undisturbed", trial::undisturbed),
    ("carries_on", trial::carries_on),
    ("restarts", trial::restarts),
];
const MOVING: &[(&str, Way)] = &[
    ("natively", trial::natively),
    ("undisturbed", trial::undisturbed),
    ("moves", trial::moves),
];
const REFUSED: &[(&str, Way)] = &[
    ("natively", trial::natively),
    ("undisturbed", trial::undisturbed),
    ("refuses", trial::refuses),
];

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
            for &ranks in &program.ranks {
                for &(way, test) in ways {
                    let name = format!("{folder}::{}::{ranks}_ranks::{way}", program.name);
                    let program = program.clone();
                    tests.push(Trial::test(name, move || {
                        test(&program, ranks).map_err(Failed::from)
                    }));
                }
            }
        }
    }
    libtest_mimic::run(&arguments, tests).exit_code()
}
