//! Programs that were built with Open MPI 5, on Open MPI 4.1: some of Open MPI 5's additions are carried, and the others are
//! refused by name.

use std::fs;

use stillpoint_tests::Failed;
use stillpoint_tests::mpis::{Mpi, changes};
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::{PATIENCE, Trial};

/// Runs a program that was built with a later release's `mpi.h` on Open MPI 4.1, then continues it on other MPIs.
fn of_open_mpi_5(name: &str, then: &[Mpi]) {
    let tested = (|| {
        let program = Program::named(Kind::Special, name)?;
        for &ranks in &program.ranks {
            let mut on = vec![Mpi::own(), Mpi::own()];
            on.extend_from_slice(then);
            changes(&program, ranks, &on.iter().collect::<Vec<_>>())?;
        }
        Ok::<(), Failed>(())
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

/// Not on Debian's MPICH, which has an error when persistent gathers are started again.
#[test]
fn persistent_collectives_by_the_names_of_open_mpi_5_are_carried() {
    of_open_mpi_5("persistent_of_open_mpi_5", &[]);
}

#[test]
fn what_open_mpi_5_has_more_than_4_is_carried() {
    let mpis = place::target().join("mpis");
    let other = Mpi::named(&mpis, "mpich-debian").unwrap_or_else(|failed| panic!("{failed}"));
    of_open_mpi_5("of_open_mpi_5", &[other, Mpi::own()]);
}

/// Runs `newer_names` with these arguments, and returns its status and its stderr.
fn newer_names(arguments: &[&str]) -> Result<(i32, String), Failed> {
    let program = Program::named(Kind::Special, "newer_names")?;
    let mut said = None;
    Directory::new("newer-names")?.run(|directory| {
        let trial = Trial::new(&program, 1, directory)?.with(arguments);
        trial.go()?;
        let ended = trial.split()?.end(PATIENCE)?;
        said = Some((ended.status, ended.stderr));
        Ok(())
    })?;
    said.ok_or_else(|| "nothing was said".to_owned())
}

/// Everything that the description of Open MPI's ABI calls refused.
#[test]
fn what_is_refused_of_open_mpi_5_is_named() {
    let description = place::project().join("wrappers/abi/openmpi.txt");
    let description = fs::read_to_string(description).expect("the description is there");
    let refused = description.lines().filter_map(|line| {
        let mut words = line.strip_prefix("refused ")?.split_whitespace();
        words.next()
    });
    let names: Vec<&str> = refused.collect();
    assert!(names.contains(&"MPI_Session_init"), "{names:?}");
    let (status, said) = newer_names(&names).unwrap_or_else(|failed| panic!("{failed}"));
    assert_eq!(status, 0, "{said}");
    for name in &names {
        let line = format!("stillpoint: {name} is not carried: ");
        assert!(said.contains(&line), "{name}: {said}");
    }
    let (status, said) =
        newer_names(&["fatal", names[0]]).unwrap_or_else(|failed| panic!("{failed}"));
    assert!(status != 0 && said.contains(names[0]), "{status}: {said}");
}
