//! What the user preloads is the application's: the lower half is without it, whose threads would see an allocator's storage twice.

use std::process::Command;

use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program, build_library};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::turn::Turn;
use stillpoint_tests::{Failed, job};

const RANKS: u32 = 2;

#[test]
fn an_allocator_that_the_job_is_started_with() {
    passes(|trial, library| {
        let mut command = started(trial)?;
        command.arg(trial.executable());
        // For the ranks alone: mpirun loads libudev, which calls malloc_usable_size.
        command.env(
            "OMPI_MCA_mca_base_env_list",
            format!("LD_PRELOAD={library}"),
        );
        Ok(command)
    });
}

#[test]
fn an_allocator_that_a_script_preloads() {
    passes(|trial, library| {
        let mut command = started(trial)?;
        command.args(["env", &format!("LD_PRELOAD={library}")]);
        command.arg(trial.executable());
        Ok(command)
    });
}

fn started(trial: &Trial) -> Result<Command, Failed> {
    job::under_stillpoint(RANKS, &trial.epochs_at())
}

/// It runs, is suspended, and carries on.
fn passes(command: impl Fn(&Trial, &str) -> Result<Command, Failed>) {
    let tested = (|| {
        let program = Program::named(Kind::Still, "nonblocking_collectives_pending")?;
        let _turn = Turn::take()?;
        Directory::new("preloaded")?.run(|directory| {
            let trial = Trial::new(&program, RANKS, directory)?;
            let library = build_library("own_allocator.c", directory.path())?;
            let mut job = trial.launch(command(&trial, &library.display().to_string())?)?;
            trial.ready(&mut job)?;
            trial.suspended(job)?;
            let job = trial.resumed()?;
            trial.go()?;
            trial.ends_well(job).map(drop)
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}
