//! Counts of the instructions in the stubs' calls (`count-instructions`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use stillpoint_tests::command::{self, exit};
use stillpoint_tests::gpu::{Gpus, Node};
use stillpoint_tests::job;
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::{Failed, ensure};

/// The longest time for single-stepping all the calls.
const LONGEST: Duration = Duration::from_secs(60);

/// The instructions of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Counted {
    upper: u64,
    lower: u64,
    /// The number of writes to FS.
    switches: u64,
}

/// Builds the marked program with these flags.
fn marked(directory: &Directory, name: &str, flags: &[&str]) -> Result<PathBuf, Failed> {
    let program = directory.file(name);
    let mut compiler = Command::new("mpicc");
    compiler.arg("-O2").args(flags).arg("-o").arg(&program);
    compiler.arg(place::sources().join("bench/marked_calls.c"));
    command::run(compiler, directory, LONGEST)?.expect(exit::DONE)?;
    Ok(program)
}

/// Counts the instructions of each call in the split process, on a node with these GPUs, or with none.
fn counted(
    directory: &Directory,
    program: &Path,
    gpus: Option<&Gpus>,
) -> Result<BTreeMap<String, Counted>, Failed> {
    let mut counting = job::mpirun(1);
    counting
        .arg(env!("CARGO_BIN_EXE_count-instructions"))
        .arg(place::stillpoint()?)
        .args(["run", "--dir"])
        .arg(directory.file("stillpoint.d"))
        .arg("--")
        .arg(program);
    if let Some(gpus) = gpus {
        gpus.reach(&mut counting)?;
    }
    let answer = command::run(counting, directory, LONGEST)?.expect(exit::DONE)?;
    // A name may have blanks. The numbers after it are: application, upper, lower, real MPI, FS writes.
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, numbers) = words.split_at_checked(words.len().checked_sub(5)?)?;
        let number = |at: usize| numbers[at].parse().ok();
        let counted = Counted {
            upper: number(1)?,
            lower: number(2)?,
            switches: number(4)?,
        };
        Some((name.join(" "), counted))
    };
    Ok(answer.stdout.lines().filter_map(row).collect())
}

/// The calls that programs make most.
const FREQUENT: [&str; 10] = [
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
];

/// These calls are *near*: a switch of the thread pointer would cost more than all other overhead.
#[test]
fn frequent_calls_do_not_switch_the_thread_pointer() {
    let tested = (|| {
        Directory::new("near-calls")?.run(|directory| {
            let program = marked(directory, "marked_calls", &[])?;
            let counted = counted(directory, &program, None)?;
            let switches = |call: &str| counted.get(call).map(|counted| counted.switches);
            // A call that is not frequent shows that switches are seen.
            ensure!(switches("MPI_Comm_dup") > Some(0), "{counted:?}");
            for call in FREQUENT {
                ensure!(switches(call) == Some(0), "{call}: {counted:?}");
            }
            Ok(())
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

/// A program without GPU use executes exactly the same number of instructions in each call, whether the node has GPUs or not. A program that has
/// initialised the driver executes more, which shows that the test would see a difference.
#[test]
fn a_program_without_a_gpu_executes_no_instruction_for_one() {
    let tested = (|| {
        Directory::new("gpu-less-calls")?.run(|directory| {
            let gpus = Gpus::start(&Node::of(2, 100 << 20))?;
            let program = marked(directory, "marked_calls", &[])?;
            let without = counted(directory, &program, None)?;
            let with = counted(directory, &program, Some(&gpus))?;
            ensure!(without.len() > 2 * FREQUENT.len(), "{without:?}");
            ensure!(
                with == without,
                "on a node with GPUs: {with:?}\nwithout: {without:?}"
            );
            let program = marked(directory, "marked_calls_gpu", &["-DGPU"])?;
            let used = counted(directory, &program, Some(&gpus))?;
            let all = |counted: &Counted| counted.upper + counted.lower;
            println!(
                "{:<26}{:>9}{:>11}",
                "instructions added", "no GPU", "with one"
            );
            for call in FREQUENT {
                let (none, one) = (without.get(call).map(all), used.get(call).map(all));
                println!("{call:<26}{:>9}{:>11}", none.unwrap_or(0), one.unwrap_or(0));
            }
            for call in ["MPI_Send", "MPI_Recv", "MPI_Allreduce"] {
                let (none, one) = (without.get(call).map(all), used.get(call).map(all));
                ensure!(one > none, "{call}: {one:?} with a GPU, {none:?} without");
            }
            Ok(())
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}
