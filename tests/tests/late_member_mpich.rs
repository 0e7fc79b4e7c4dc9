//! One member of a collective operation computes while all others are in it, in MPICH: a checkpoint waits for nobody there either, a restart may be on Open MPI, and the next one on
//! MPICH again. `late_member.rs` has more operations.

use stillpoint_tests::Failed;
use stillpoint_tests::command::{self, exit};
use stillpoint_tests::mpis::{Across, Mpi, OWN};
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::turn::Turn;

const DEBIAN: &str = "mpich-debian";
const NEWER: &str = "mpich";
const INTEL: &str = "impi";

/// Programs that were built for one MPI, on another; an operation and its late rank, root, number of elements, and how.
fn each<const ARGUMENTS: usize>(built_for: &str, on: &str, cases: &[[&str; ARGUMENTS]]) {
    for case in cases {
        let tested = (|| {
            let mpis = place::target().join("mpis");
            let (home, on) = (Mpi::named(&mpis, built_for)?, Mpi::named(&mpis, on)?);
            let program = Program::named(Kind::Special, "late_member")?.built_for(&home);
            let _turn = Turn::take()?;
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
    each(
        DEBIAN,
        DEBIAN,
        &[
            ["barrier", "1", "0", "40"],
            ["allreduce", "1", "0", "40"],
            ["alltoallw", "1", "0", "40"],
            ["alltoall", "0", "0", "400000"],
        ],
    );
}

#[test]
fn operations_that_begin_with_the_late_member() {
    each(
        DEBIAN,
        DEBIAN,
        &[
            ["bcast", "0", "0", "40"],
            ["exscan", "0", "0", "40"],
            ["split", "0", "0", "1"],
            ["finalize", "0", "0", "1"],
        ],
    );
}

#[test]
fn what_is_carried_out_for_the_late_member() {
    each(DEBIAN, DEBIAN, &[["several", "2", "0", "60"]]);
}

#[test]
fn a_member_that_waits_for_a_message_is_late_too() {
    each(DEBIAN, DEBIAN, &[["behind", "1", "0", "40"]]);
}

#[test]
fn input_in_place() {
    each(
        DEBIAN,
        DEBIAN,
        &[
            ["allreduce", "0", "0", "42", "in_place"],
            ["scan", "0", "0", "3000", "in_place"],
        ],
    );
}

#[test]
fn a_program_that_may_call_from_every_thread() {
    each(
        DEBIAN,
        DEBIAN,
        &[
            ["barrier", "1", "0", "40", "threads"],
            ["allreduce", "1", "0", "40", "threads"],
            ["alltoall", "0", "0", "400000", "threads"],
            ["bcast", "0", "0", "40", "threads"],
            ["split", "0", "0", "1", "threads"],
            ["several", "2", "0", "60", "threads"],
            ["behind", "1", "0", "40", "threads"],
        ],
    );
}

#[test]
fn mpich_5_with_the_abi_of_the_standard() {
    each(
        NEWER,
        NEWER,
        &[
            ["barrier", "1", "0", "40"],
            ["allreduce", "1", "0", "40"],
            ["alltoall", "0", "0", "400000"],
            ["bcast", "0", "0", "40"],
            ["exscan", "0", "0", "40"],
            ["split", "0", "0", "1"],
            ["finalize", "0", "0", "1"],
            ["several", "2", "0", "60"],
            ["behind", "1", "0", "40"],
        ],
    );
    each(
        NEWER,
        NEWER,
        &[
            ["allreduce", "1", "0", "40", "threads"],
            ["bcast", "0", "0", "40", "threads"],
            ["allreduce", "0", "0", "42", "in_place"],
        ],
    );
}

#[test]
fn mpich_5_with_its_own_abi() {
    each(
        DEBIAN,
        NEWER,
        &[
            ["barrier", "1", "0", "40"],
            ["allreduce", "1", "0", "40"],
            ["behind", "1", "0", "40"],
        ],
    );
    each(DEBIAN, NEWER, &[["allreduce", "1", "0", "40", "threads"]]);
}

#[test]
fn programs_of_open_mpi_on_mpich_5() {
    each(
        OWN,
        NEWER,
        &[
            ["allreduce", "1", "0", "40"],
            ["finalize", "0", "0", "1"],
            ["behind", "1", "0", "40"],
        ],
    );
}

#[test]
fn intel_mpi() {
    let cases = [
        ["barrier", "1", "0", "40"],
        ["allreduce", "1", "0", "40"],
        ["alltoall", "0", "0", "400000"],
        ["bcast", "0", "0", "40"],
        ["split", "0", "0", "1"],
        ["several", "2", "0", "60"],
        ["behind", "1", "0", "40"],
    ];
    each(DEBIAN, INTEL, &cases);
    each(NEWER, INTEL, &cases[..2]);
    each(OWN, INTEL, &cases[..2]);
}
