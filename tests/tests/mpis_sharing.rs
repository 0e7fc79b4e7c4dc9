//! Resources other than messages that the ranks of a job share, with another MPI at a restart: memory of windows, and file pointers. From the machine's Open
//! MPI to Debian's MPICH and back, and from MPICH to MPICH.

use stillpoint_tests::Failed;
use stillpoint_tests::mpis::{Mpi, changes};
use stillpoint_tests::place;
use stillpoint_tests::program::{Kind, Program};

/// Returns the MPICH that `ci/setup` has unpacked.
fn mpich() -> Result<Mpi, Failed> {
    Mpi::named(&place::target().join("mpis"), "mpich-debian")
}

/// Runs a program built for either MPI, on each of these and back.
fn goes_everywhere(kind: Kind, name: &str) {
    let tested = (|| {
        let (own, other) = (Mpi::own(), mpich()?);
        changes(&Program::named(kind, name)?, 2, &[&own, &other, &own])?;
        let program = Program::named(kind, name)?.built_for(&other);
        changes(&program, 3, &[&other, &other, &own, &other])
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

#[test]
fn windows_of_shared_memory() {
    goes_everywhere(Kind::Still, "windows_shared");
}

#[test]
fn windows_of_shared_memory_that_are_written_to_all_the_time() {
    goes_everywhere(Kind::Moving, "windows_shared_all_the_time");
}

#[test]
fn files_with_shared_pointers() {
    goes_everywhere(Kind::Still, "files_shared_pointer");
}

/// Open MPI 4.1 makes no such windows of the caller's memory.
#[test]
fn windows_of_one_process() {
    let tested = (|| {
        let mpich = mpich()?;
        let program = Program::named(Kind::Special, "windows_alone")?.built_for(&mpich);
        changes(&program, 2, &[&mpich, &mpich, &mpich])
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}
