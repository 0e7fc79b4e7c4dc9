//! Jobs of other MPIs while some ranks wait for a late member of a collective operation in the real MPI's own functions. Checkpoints come one after the other,
//! and restarts are on the same MPI and on the machine's own.

use crate::Failed;
use crate::command::{self, exit};
use crate::mpis::{Across, Mpi};
use crate::place::{self, Directory};
use crate::program::{Kind, Program};
use crate::trial::Trial;

/// Runs programs that were built for one MPI, on another. Each case is an operation and its late rank, root, number of
/// elements, and variant.
pub fn late_member<const ARGUMENTS: usize>(built_for: &str, on: &str, cases: &[[&str; ARGUMENTS]]) {
    for case in cases {
        let tested = (|| {
            let mpis = place::target().join("mpis");
            let (home, on) = (Mpi::named(&mpis, built_for)?, Mpi::named(&mpis, on)?);
            let program = Program::named(Kind::Special, "late_member")?.built_for(&home);
            Directory::new(&format!("late-{built_for}-{}-{}", on.name, case.join("-")))?.run(
                |directory| {
                    let trial = Trial::new(&program, 3, directory)?.with(case);
                    waits_for_nobody(&Across { trial }, &on)
                },
            )
        })();
        if let Err(failed) = tested {
            panic!("{built_for} on {on}, {}: {failed}", case.join(" "));
        }
    }
}

/// The late member comes only after three suspends and restarts.
fn waits_for_nobody(across: &Across, mpich: &Mpi) -> Result<(), Failed> {
    let trial = &across.trial;
    let mut job = across.started(mpich)?;
    trial.ready(&mut job)?;
    command::checkpoint(trial.directory, &trial.epochs_at())?.expect(exit::DONE)?;
    trial.suspended(job)?;
    for on in [mpich, &Mpi::own()] {
        let mut job = across.restarted(on)?;
        trial.runs_again(&mut job)?;
        trial.suspended(job)?;
    }
    let job = across.restarted(mpich)?;
    trial.go()?;
    trial.ends_well(job).map(drop)
}

/// Runs a program of MPICH that waits in many ways, on one of these: the job carries on from some checkpoints, and is restarted from
/// others.
pub fn in_waits(mpi: &str, name: &str, ranks: u32) {
    if let Err(failed) = waits(mpi, name, ranks) {
        panic!("{name} on {mpi}: {failed}");
    }
}

fn waits(mpi: &str, name: &str, ranks: u32) -> Result<(), Failed> {
    let named = |name| Mpi::named(&place::target().join("mpis"), name);
    let mpich = named(mpi)?;
    let program = Program::named(Kind::Still, name)?.built_for(&named("mpich-debian")?);
    Directory::new(&format!("waits-{mpi}-{name}"))?.run(|directory| {
        let across = Across {
            trial: Trial::new(&program, ranks, directory)?,
        };
        let trial = &across.trial;
        let mut job = across.started(&mpich)?;
        trial.ready(&mut job)?;
        // Everything that the first checkpoint saw is still there for the second, as it is for the real MPI.
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
