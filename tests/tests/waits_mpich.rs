//! Ranks wait in the real MPI's own functions, on MPICH 4.0, which calls back while it waits, and in tests of requests on MPICH 5.0: checkpoints come one after the other, the job carries on from some of them, and is
//! restarted from others, on another MPI too. `programs.rs` has the same programs on the machine's own.

use stillpoint_tests::Failed;
use stillpoint_tests::command::{self, exit};
use stillpoint_tests::mpis::{Across, Mpi};
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::turn::Turn;

const BOTH: [&str; 2] = ["mpich-debian", "mpich"];

/// A program of MPICH on each of them.
fn each(name: &str, ranks: u32, mpis: &[&str]) {
    for mpi in mpis {
        if let Err(failed) = on(mpi, name, ranks) {
            panic!("{name} on {mpi}: {failed}");
        }
    }
}

fn on(mpi: &str, name: &str, ranks: u32) -> Result<(), Failed> {
    let named = |name| Mpi::named(&place::target().join("mpis"), name);
    let mpich = named(mpi)?;
    let program = Program::named(Kind::Still, name)?.built_for(&named("mpich-debian")?);
    let _turn = Turn::take()?;
    Directory::new(&format!("waits-{mpi}-{name}"))?.run(|directory| {
        let across = Across {
            trial: Trial::new(&program, ranks, directory)?,
        };
        let trial = &across.trial;
        let mut job = across.started(&mpich)?;
        trial.ready(&mut job)?;
        // What was seen for the first is there for the second, as it is for the real MPI.
        for _ in 0..2 {
            command::checkpoint(trial.directory, &trial.epochs_at())?.expect(exit::DONE)?;
        }
        trial.suspended(job)?;
        for on in [&mpich, &Mpi::own()] {
            let mut job = across.restarted(on)?;
            trial.runs_again(&mut job)?;
            command::checkpoint(trial.directory, &trial.epochs_at())?.expect(exit::DONE)?;
            trial.suspended(job)?;
        }
        let mut job = across.restarted(&mpich)?;
        trial.runs_again(&mut job)?;
        command::checkpoint(trial.directory, &trial.epochs_at())?.expect(exit::DONE)?;
        trial.go()?;
        trial.ends_well(job).map(drop)
    })
}

#[test]
fn requests_of_which_some_are_over() {
    each("waits_half_over", 8, &BOTH);
}

#[test]
fn every_call_that_waits() {
    each("blocked_in_completion", 8, &BOTH);
}

#[test]
fn receives_that_come_to_their_end_meanwhile() {
    each("posted_receive_completes_in_drain", 2, &BOTH);
}

/// It cancels a send, which ends programs on MPICH 5.0.2 natively too.
#[test]
fn windows_of_which_half_is_begun_later() {
    each("requests_in_windows", 2, &["mpich-debian"]);
}
