//! A rank without a launcher. The real MPI starts a daemon of its own, which is no child of the application.
//!
//! Also a rank whose program is a script that starts the MPI program: that program then becomes the rank.

use std::path::Path;
use std::process::Command;

use stillpoint_tests::command::{self, exit};
use stillpoint_tests::mpis::Mpi;
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::{Failed, ensure};

#[test]
fn a_rank_without_a_launcher_is_checkpointed_suspended_and_restarted() {
    let tested = (|| {
        let program = Program::named(Kind::Still, "clocks")?;
        Directory::new("alone")?.run(|directory| run(&Trial::new(&program, 1, directory)?, None))
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

/// MPICH starts a launcher if a process asks how many processes there could be, and waits for it: only the program may ask.
#[test]
fn a_rank_of_mpich_without_a_launcher_is_carried_too() {
    let tested = (|| {
        let mpich = Mpi::named(&place::target().join("mpis"), "mpich-debian")?;
        let program = Program::named(Kind::Still, "clocks")?.built_for(&mpich);
        let library = place::target().join("mpis/mpich-debian/lib/libmpich.so.12");
        Directory::new("alone-mpich")?.run(|directory| {
            let trial = Trial::new(&program, 1, directory)?;
            run(&trial, Some(&library))
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

#[test]
fn a_script_leaves_its_rank_to_the_program_that_it_starts() {
    let tested = (|| {
        let program = Program::named(Kind::Still, "clocks")?;
        Directory::new("script")?.run(|directory| script(&Trial::new(&program, 1, directory)?))
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

/// The kernel allows this only to processes of one thread, and Stillpoint's threads are in the same process: in a rank, and in processes that it starts before
/// MPI runs.
#[test]
fn a_program_of_one_thread_makes_itself_a_user_namespace() {
    let tested = (|| {
        let own = "unshare -Ur /bin/sh -c 'id -u; exit 7'";
        for program in [
            format!("exec {own}"),
            format!("{own}; exit $?"),
            format!("{own} & wait $!"),
        ] {
            let program = ["/bin/sh", "-c", &program];
            let ended = |command: &mut Command| {
                let ended = command.output();
                ended.map_err(|error| format!("{}: {error}", program[2]))
            };
            let native = ended(Command::new(program[0]).args(&program[1..]))?;
            if native.status.code() != Some(7) {
                eprintln!("here nobody makes a user namespace: nothing to compare");
                return Ok(());
            }
            Directory::new("namespace")?.run(|directory| {
                let mut command = Command::new(place::stillpoint()?);
                command.arg("run").arg("--dir").arg(directory.epochs());
                command.arg("--").args(program);
                let split = ended(&mut command)?;
                let (status, said) = (split.status, split.stdout);
                ensure!(status.code() == Some(7), "{}: {status}", program[2]);
                ensure!(said == native.stdout, "{}: {said:?}", program[2]);
                Ok(())
            })?;
        }
        Ok::<(), Failed>(())
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

fn script(trial: &Trial) -> Result<(), Failed> {
    let target = trial.epochs_at();
    let mut command = Command::new(place::stillpoint()?);
    command.arg("run").arg("--dir").arg(&target).arg("--");
    // A plain `sh -c` would exec the last program of its script.
    command.args(["/bin/sh", "-c", "\"$0\" \"$@\"; exit $?"]);
    command.arg(trial.executable()).args(&trial.arguments);
    let mut job = trial.launch(command)?;
    trial.ready(&mut job)?;
    command::checkpoint(trial.directory, &target)?.expect(exit::DONE)?;
    trial.go()?;
    trial.ends_well(job)?;
    // The script must not return as the rank that it was at first, which the coordinator would have turned away.
    let log = target.join("coordinator.log");
    let log =
        std::fs::read_to_string(&log).map_err(|error| format!("{}: {error}", log.display()))?;
    ensure!(
        !log.contains("refused the connection"),
        "the coordinator's log:\n{log}"
    );
    Ok(())
}

/// The library is the machine's own. Another one is found where the program finds it, and a restart names it.
fn run(trial: &Trial, library: Option<&Path>) -> Result<(), Failed> {
    let target = trial.epochs_at();
    let mut command = Command::new(place::stillpoint()?);
    command.arg("run").arg("--dir").arg(&target).arg("--");
    command.arg(trial.executable()).args(&trial.arguments);
    let mut job = trial.launch(command)?;
    trial.ready(&mut job)?;
    command::checkpoint(trial.directory, &target)?.expect(exit::DONE)?;
    trial.suspended(job)?;
    for last in [false, true] {
        let mut command = Command::new(place::stillpoint()?);
        command.arg("restart");
        if let Some(library) = library {
            command.arg("--mpi-library").arg(library);
        }
        command.arg(&target);
        let mut job = trial.launch(command)?;
        let mut state = String::new();
        job.until("running again", std::time::Duration::from_secs(20), |_| {
            state = command::state(trial.directory, &target).unwrap_or_default();
            state == "running"
        })?;
        ensure!(state == "running", "it is {state}");
        if last {
            trial.go()?;
            trial.ends_well(job)?;
        } else {
            trial.suspended(job)?;
        }
    }
    Ok(())
}
