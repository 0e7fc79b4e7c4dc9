//! What the stubs' calls execute, instruction by instruction (`count-instructions`).

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use stillpoint_tests::command::{self, exit};
use stillpoint_tests::job;
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::turn::Turn;
use stillpoint_tests::{Failed, ensure};

/// Longest that single-stepping all the calls may take.
const LONGEST: Duration = Duration::from_secs(60);

/// By call, how often it writes FS in the split process.
fn switches(directory: &Directory) -> Result<BTreeMap<String, u64>, Failed> {
    let program = directory.file("marked_calls");
    let mut compiler = Command::new("mpicc");
    compiler.args(["-O2", "-o"]).arg(&program);
    compiler.arg(place::sources().join("bench/marked_calls.c"));
    command::run(compiler, directory, LONGEST)?.expect(exit::DONE)?;
    let mut counting = job::mpirun(1);
    counting
        .arg(env!("CARGO_BIN_EXE_count-instructions"))
        .arg(place::stillpoint()?)
        .args(["run", "--dir"])
        .arg(directory.file("stillpoint.d"))
        .arg("--")
        .arg(program);
    let answer = command::run(counting, directory, LONGEST)?.expect(exit::DONE)?;
    let row = |line: &str| {
        let (name, count) = (
            line.split_whitespace().next()?,
            line.split_whitespace().last()?,
        );
        Some((name.to_owned(), count.parse().ok()?))
    };
    Ok(answer.stdout.lines().filter_map(row).collect())
}

/// They are *near*: a switch of the thread pointer would cost more than all the rest that is added to them.
#[test]
fn frequent_calls_do_not_switch_the_thread_pointer() {
    let tested = (|| {
        let _turn = Turn::take()?;
        Directory::new("near-calls")?.run(|directory| {
            let switches = switches(directory)?;
            // One that is not frequent, so that it is known that switches are seen.
            ensure!(switches.get("MPI_Pack") == Some(&2), "{switches:?}");
            for call in [
                "MPI_Barrier",
                "MPI_Bcast",
                "MPI_Allreduce",
                "MPI_Alltoall",
                "MPI_Iallreduce+MPI_Wait",
                "MPI_Send",
                "MPI_Recv",
                "MPI_Isend+MPI_Wait",
                "MPI_Irecv+MPI_Wait",
                "MPI_Iprobe",
            ] {
                ensure!(switches.get(call) == Some(&0), "{call}: {switches:?}");
            }
            Ok(())
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}
