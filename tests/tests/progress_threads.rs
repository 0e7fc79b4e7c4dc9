//! MPICH is told to progress on threads of its own. They would call operators of the program, which are for the program's threads alone.

use stillpoint_tests::Failed;
use stillpoint_tests::mpis::{Across, Mpi};
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;

const RANKS: u32 = 3;
const TOLD: (&str, &str) = ("MPIR_CVAR_ASYNC_PROGRESS", "1");

#[test]
fn operators_run_on_the_programs_threads() {
    if let Err(failed) = run() {
        panic!("{failed}");
    }
}

/// In the first launch and after a restart.
fn run() -> Result<(), Failed> {
    let mpich = Mpi::named(&place::target().join("mpis"), "mpich-debian")?;
    let program = Program::named(Kind::Special, "operators_meanwhile")?.built_for(&mpich);
    Directory::new("progress-threads")?.run(|directory| {
        let mut trial = Trial::new(&program, RANKS, directory)?;
        trial.settings = vec![TOLD];
        let across = Across { trial };
        let mut job = across.started(&mpich)?;
        across.trial.ready(&mut job)?;
        across.trial.suspended(job)?;
        let job = across.restarted(&mpich)?;
        across.trial.go()?;
        across.trial.ends_well(job).map(drop)
    })
}
