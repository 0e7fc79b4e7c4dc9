//! An MPI program that a statically linked program runs in a rank's place, as valgrind does: it runs as natively, and a checkpoint is refused by name at once.

use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use stillpoint_refusals::Code;
use stillpoint_tests::command::{self, exit};
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::{PATIENCE, Trial};
use stillpoint_tests::{Failed, ensure, job, strike};

/// The longest time for a refusal that does not wait for anything.
const SOON: Duration = Duration::from_secs(8);

fn static_runner(directory: &Directory) -> Result<PathBuf, Failed> {
    let runner = directory.file("static_runner");
    let source = place::sources().join("runtimes/static_runner.c");
    let mut cc = Command::new("cc");
    cc.args(["-static", "-O1", "-o"]).arg(&runner).arg(source);
    let built = cc.output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&built.stderr);
    ensure!(built.status.success(), "{}: {said}", command::describe(&cc));
    Ok(runner)
}

/// The ways in which the rank's process becomes that program: at once, and by a second program that has no agent.
const WAYS: [&str; 2] = ["exec \"$0\" \"$@\"", "exec env \"$0\" \"$@\""];

#[test]
fn a_program_inside_a_static_one_runs_and_a_checkpoint_names_that_one() {
    let tested = WAYS.into_iter().try_for_each(|way| {
        let program = Program::named(Kind::Still, "self_messages")?;
        Directory::new("unsplit")?.run(|directory| {
            let trial = Trial::new(&program, 2, directory)?;
            let target = trial.epochs_at();
            let runner = static_runner(directory)?;
            let mut command = job::under_stillpoint(2, &target)?;
            command.args(["sh", "-c", way]).arg(&runner);
            command.arg(trial.executable());
            let mut job = trial.launch(command)?;
            trial.ready(&mut job)?;
            let words = ["checkpoint", "--timeout", "30"].map(str::to_owned);
            let shown = target.display().to_string();
            let answer = command::stillpoint(directory, words.into_iter().chain([shown]))?;
            let answer = answer.expect_code(exit::REFUSED, Code::UnsplitProgram)?;
            let named = format!("has become {}", runner.display());
            ensure!(answer.stderr.contains(&named), "{}", answer.show());
            ensure!(answer.took < SOON, "{}", answer.show());
            let answer = command::suspend(directory, &target)?;
            answer.expect_code(exit::REFUSED, Code::UnsplitProgram)?;
            trial.go()?;
            job.until_over(PATIENCE)?;
            // The coordinator ends with the test's job.
            let began = Instant::now();
            while strike::job_file(&target)?["state"] == "running" {
                ensure!(began.elapsed() < PATIENCE, "the coordinator does not end");
                thread::sleep(Duration::from_millis(20));
            }
            let file = strike::job_file(&target)?;
            let reason = file["reason"].to_string();
            ensure!(reason.contains("has ended as"), "{file}");
            let ended = trial.ends_well(job)?;
            ensure!(ended.stderr.is_empty(), "{}", ended.show());
            Ok(())
        })
    });
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

/// Runs a static program in a process of its own, some time before the script becomes the MPI program.
const HELPER: &str =
    r#"exec sh -c 'sh -c "exec \"\$0\" /bin/true" "$0"; sleep 3; exec "$1"' "$0" "$1""#;

#[test]
fn a_static_helper_of_a_script_is_not_the_rank() {
    let tested = (|| {
        let program = Program::named(Kind::Still, "self_messages")?;
        Directory::new("unsplit-helper")?.run(|directory| {
            let trial = Trial::new(&program, 2, directory)?;
            let target = trial.epochs_at();
            let runner = static_runner(directory)?;
            let mut command = job::under_stillpoint(2, &target)?;
            command.args(["sh", "-c", HELPER]).arg(&runner);
            command.arg(trial.executable());
            let mut job = trial.launch(command)?;
            trial.ready(&mut job)?;
            trial.suspended(job)?;
            let job = trial.restarted()?;
            trial.go()?;
            trial.ends_well(job).map(drop)
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}
