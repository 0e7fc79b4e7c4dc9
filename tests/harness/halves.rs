//! The libraries of the application's half of a rank.

use std::fs;

use crate::job::Job;
use crate::mpis::{Across, Mpi};
use crate::place::{self, Directory};
use crate::program::{Kind, Program};
use crate::trial::{PATIENCE, Trial};
use crate::{Failed, ensure};

const RANKS: u32 = 2;

/// Parts of paths of libraries that belong to the real MPI.
const OF_MPI: [&str; 12] = [
    "/libmpi.so",
    "/libmpi_abi.so",
    "/libmpich.so",
    "/libopen-",
    "/libpmix",
    "/libprrte",
    "/libhwloc",
    "/libevent",
    "/libucp",
    "/libucs",
    "/libuct",
    "/libfabric",
];

/// A program that loads MPI's library, whose name is the argument, by itself; it waits as `common.h`'s programs do.
const IN_PYTHON: &str = "
import ctypes, os, sys, time
mpi = ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
mpi.MPI_Init(None, None)
rank = os.environ.get('OMPI_COMM_WORLD_RANK', os.environ.get('PMI_RANK'))
open('ready.' + rank, 'w').close()
while not os.path.exists('go'): time.sleep(0.02)
mpi.MPI_Finalize()
";

/// Checks a program, built for this MPI and started on it: its half has the stubs, and no page of a library of the real MPI.
///
/// # Errors
/// The library that is there, or the reason why the program has not come so far.
pub fn hold_only_stubs(program: &str, on: &Mpi) -> Result<(), Failed> {
    let program = Program::named(Kind::Still, program)?.built_for(on);
    Directory::new("halves")?.run(|directory| {
        let across = Across {
            trial: Trial::new(&program, RANKS, directory)?,
        };
        let job = across.started(on)?;
        checked(&across.trial, job, &program.name)
    })
}

/// The same of a program in Python that loads MPI by this name.
///
/// # Errors
/// Those of [`hold_only_stubs`].
pub fn hold_only_stubs_in_python(library: &str, on: &Mpi) -> Result<(), Failed> {
    let program = Program::named(Kind::Still, "blocking_collectives")?;
    Directory::new("halves")?.run(|directory| {
        let trial = Trial::new(&program, RANKS, directory)?;
        let mut command = on.launcher(RANKS);
        command.arg(place::stillpoint()?).args(["run", "--dir"]);
        command.arg(trial.epochs_at()).args(["--", "python3", "-c"]);
        command.args([IN_PYTHON, library]);
        let job = trial.launch(command)?;
        checked(&trial, job, "python3")
    })
}

fn checked(trial: &Trial<'_>, mut job: Job, name: &str) -> Result<(), Failed> {
    trial.ready(&mut job)?;
    let mut looked_at = 0;
    for rank in below(job.id()) {
        let line = fs::read(format!("/proc/{rank}/cmdline")).unwrap_or_default();
        let first = line.split(|byte| *byte == 0).next().unwrap_or_default();
        if !String::from_utf8_lossy(first).ends_with(name) {
            continue;
        }
        let path = format!("/proc/{rank}/maps");
        let maps = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        let libraries: Vec<&str> = maps.lines().filter_map(of_application).collect();
        looked_at += 1;
        let is_there = |part: &&str| libraries.iter().any(|path| path.contains(*part));
        ensure!(
            is_there(&"/libstillpoint_upper_"),
            "no stubs: {libraries:?}"
        );
        let found: Vec<&str> = OF_MPI.into_iter().filter(is_there).collect();
        ensure!(found.is_empty(), "{found:?} among {libraries:?}");
    }
    ensure!(
        looked_at == RANKS,
        "{looked_at} ranks were found in place of {RANKS}"
    );
    trial.go()?;
    let ended = job.end(PATIENCE)?;
    ensure!(ended.status == 0, "{}", ended.show());
    Ok(())
}

/// Returns the processes that a process has started, and those that these have started. (A rank's environment has no mark of its job.)
fn below(process: i32) -> Vec<i32> {
    let path = format!("/proc/{process}/task/{process}/children");
    let children = fs::read_to_string(path).unwrap_or_default();
    let children = children
        .split_whitespace()
        .filter_map(|child| child.parse().ok());
    let with_theirs = |child: i32| [vec![child], below(child)].concat();
    children.flat_map(with_theirs).collect()
}

/// Returns the library that a line of `/proc/PID/maps` shows, if it is mapped in the arena.
fn of_application(line: &str) -> Option<&str> {
    let start = usize::from_str_radix(line.split('-').next()?, 16).ok()?;
    let path = &line[line.find('/')?..];
    let upper = (0x5501_0000_0000..0x5555_0000_0000).contains(&start);
    (upper && path.contains(".so")).then_some(path)
}
