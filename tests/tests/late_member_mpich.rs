//! One member of a collective operation computes while all others are in it, in Debian's MPICH: a checkpoint waits for nobody there either, a restart may be on Open
//! MPI, and the next one on MPICH again. `late_member.rs` has more operations.

use stillpoint_tests::Failed;
use stillpoint_tests::command::{self, exit};
use stillpoint_tests::mpis::{Across, Mpi};
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::turn::Turn;

/// An operation and its late rank, root, number of elements, and how.
fn each<const ARGUMENTS: usize>(cases: &[[&str; ARGUMENTS]]) {
    for case in cases {
        let tested = (|| {
            let mpich = Mpi::named(&place::target().join("mpis"), "mpich-debian")?;
            let program = Program::named(Kind::Special, "late_member")?.built_for(&mpich);
            let _turn = Turn::take()?;
            Directory::new(&format!("late-mpich-{}-{}", case[0], case[1]))?.run(|directory| {
                let trial = Trial::new(&program, 3, directory)?.with(case);
                waits_for_nobody(&Across { trial }, &mpich)
            })
        })();
        if let Err(failed) = tested {
            panic!("{}: {failed}", case.join(" "));
        }
    }
}

/// The late member never comes before it has been suspended and restarted, and again.
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

#[test]
fn operations_that_everybody_waits_in() {
    each(&[
        ["barrier", "1", "0", "40"],
        ["allreduce", "1", "0", "40"],
        ["alltoallw", "1", "0", "40"],
        ["alltoall", "0", "0", "400000"],
    ]);
}

#[test]
fn operations_that_begin_with_the_late_member() {
    each(&[
        ["bcast", "0", "0", "40"],
        ["exscan", "0", "0", "40"],
        ["split", "0", "0", "1"],
        ["finalize", "0", "0", "1"],
    ]);
}

#[test]
fn what_is_carried_out_for_the_late_member() {
    each(&[["several", "2", "0", "60"]]);
}

#[test]
fn a_member_that_waits_for_a_message_is_late_too() {
    each(&[["behind", "1", "0", "40"]]);
}

#[test]
fn input_in_place() {
    each(&[
        ["allreduce", "0", "0", "42", "in_place"],
        ["scan", "0", "0", "3000", "in_place"],
    ]);
}
