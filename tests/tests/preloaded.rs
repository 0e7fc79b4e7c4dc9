//! The user's settings of the dynamic loader apply to the application. The lower half does without preloaded libraries, since its
//! threads would see an allocator's storage twice. Audit libraries see the application's objects, and not the lower half's.

use std::process::Command;

use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program, build_library};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::{Failed, job};

const RANKS: u32 = 2;

#[test]
fn an_allocator_that_the_job_is_started_with() {
    passes("own_allocator.c", |trial, library| {
        let mut command = started(trial)?;
        command.arg(trial.executable());
        // The setting is for the ranks alone: mpirun loads libudev, which calls malloc_usable_size.
        command.env(
            "OMPI_MCA_mca_base_env_list",
            format!("LD_PRELOAD={library}"),
        );
        Ok(command)
    });
}

#[test]
fn an_allocator_that_a_script_preloads() {
    passes("own_allocator.c", |trial, library| {
        let mut command = started(trial)?;
        command.args(["env", &format!("LD_PRELOAD={library}")]);
        command.arg(trial.executable());
        Ok(command)
    });
}

#[test]
fn an_audit_library_that_the_job_is_started_with() {
    let audited = passes("audit.c", |trial, library| {
        let mut command = started(trial)?;
        command.arg(trial.executable());
        command.env("OMPI_MCA_mca_base_env_list", format!("LD_AUDIT={library}"));
        Ok(command)
    });
    sees_the_application_alone(&audited);
}

#[test]
fn an_audit_library_that_a_script_names() {
    let audited = passes("audit.c", |trial, library| {
        let mut command = started(trial)?;
        command.args(["env", &format!("LD_AUDIT={library}")]);
        command.arg(trial.executable());
        Ok(command)
    });
    sees_the_application_alone(&audited);
}

fn sees_the_application_alone(audited: &str) {
    assert!(audited.contains("libmpi.so"), "{audited}");
    // The real MPI, with its components, belongs to the lower half.
    assert!(!audited.contains("mca_btl_"), "{audited}");
}

fn started(trial: &Trial) -> Result<Command, Failed> {
    job::under_stillpoint(RANKS, &trial.epochs_at())
}

/// Runs a job, suspends it, and carries it on. Returns the notes of an audit library.
fn passes(source: &str, command: impl Fn(&Trial, &str) -> Result<Command, Failed>) -> String {
    let mut audited = String::new();
    let tested = (|| {
        let program = Program::named(Kind::Still, "nonblocking_collectives_pending")?;
        Directory::new("preloaded")?.run(|directory| {
            let trial = Trial::new(&program, RANKS, directory)?;
            let library = build_library(source, directory.path())?;
            let mut job = trial.launch(command(&trial, &library.display().to_string())?)?;
            trial.ready(&mut job)?;
            trial.suspended(job)?;
            let job = trial.resumed()?;
            trial.go()?;
            trial.ends_well(job)?;
            let notes = std::fs::read_to_string(directory.path().join("audited"));
            audited = notes.unwrap_or_default();
            Ok(())
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
    audited
}
