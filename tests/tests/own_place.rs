//! The stubs stand in libmpi's own place: tools that stand before libmpi see the program's calls and no others, programs that load MPI by themselves get the
//! stubs, and the application's half holds no other MPI.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::{Trial, restarts};
use stillpoint_tests::{Failed, ensure, job};

const RANKS: u32 = 2;

/// Whether a tool is preloaded, or linked before libmpi.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Preloaded,
    Linked,
}

#[test]
fn a_preloaded_tool_counts_what_it_counts_natively() {
    counts(&["one"], Place::Preloaded);
}

#[test]
fn a_tool_that_is_linked_before_libmpi_counts_what_it_counts_natively() {
    counts(&["one"], Place::Linked);
}

#[test]
fn a_chain_of_two_preloaded_tools_counts_what_it_counts_natively() {
    counts(&["one", "two"], Place::Preloaded);
}

#[test]
fn a_chain_of_two_linked_tools_counts_what_it_counts_natively() {
    counts(&["one", "two"], Place::Linked);
}

/// Compares the tools' reports of a native run with those of a run that is suspended and carried on.
fn counts(tools: &[&str], place: Place) {
    let tested = (|| {
        let program = Program::named(Kind::Special, "counted")?;
        Directory::new("own-place")?.run(|directory| {
            let trial = Trial::new(&program, RANKS, directory)?;
            let tools: Vec<PathBuf> = tools
                .iter()
                .map(|name| built_tool(name, directory.path()))
                .collect::<Result<_, _>>()?;
            let counted = match place {
                Place::Preloaded => trial.executable().to_owned(),
                Place::Linked => linked(&program, &tools, directory.path())?,
            };
            let with_tools = |mut command: Command| {
                if place == Place::Preloaded {
                    let list: Vec<String> =
                        tools.iter().map(|it| it.display().to_string()).collect();
                    command.args(["env", &format!("LD_PRELOAD={}", list.join(":"))]);
                }
                command.arg(&counted);
                command
            };
            let mut job = trial.launch(with_tools(job::under_stillpoint(
                RANKS,
                &trial.epochs_at(),
            )?))?;
            trial.ready(&mut job)?;
            trial.suspended(job)?;
            let job = trial.resumed()?;
            trial.go()?;
            let under_run = reports(&trial.ends_well(job)?.stdout);
            let native = trial.launch(with_tools(job::mpirun(RANKS)))?;
            let native = reports(&trial.ends_well(native)?.stdout);
            ensure!(
                native.len() == tools.len(),
                "{} tools reported: {native:?}",
                native.len()
            );
            ensure!(
                native
                    .iter()
                    .all(|it| it.contains(": 300 reductions, 300 sent")),
                "natively {native:?}"
            );
            ensure!(
                under_run == native,
                "natively {native:?}, under run {under_run:?}"
            );
            Ok(())
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

fn reports(output: &str) -> Vec<String> {
    let lines = output.lines().filter(|line| line.contains(" reductions, "));
    let mut lines: Vec<String> = lines.map(str::to_owned).collect();
    lines.sort();
    lines
}

fn sources() -> PathBuf {
    stillpoint_tests::place::project().join("tests/programs")
}

/// Builds the tool under a name. It has libmpi's functions from the program's own libmpi.
fn built_tool(name: &str, folder: &Path) -> Result<PathBuf, Failed> {
    let tool = folder.join(format!("lib{name}.so"));
    let mut command = Command::new("mpicc");
    command.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&tool);
    command.arg(sources().join("libraries/tool.c"));
    succeeds(command)?;
    Ok(tool)
}

/// Links the program with the tools before libmpi.
fn linked(program: &Program, tools: &[PathBuf], folder: &Path) -> Result<PathBuf, Failed> {
    let executable = folder.join("counted");
    let mut command = Command::new("mpicc");
    command.args(["-std=gnu11", "-O1", "-o"]).arg(&executable);
    command
        .arg(&program.source)
        .arg("-Wl,--no-as-needed")
        .args(tools);
    succeeds(command)?;
    Ok(executable)
}

fn succeeds(mut command: Command) -> Result<(), Failed> {
    let output = command.output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {said}");
    Ok(())
}

#[test]
fn programs_that_load_mpi_by_themselves_get_the_stubs() {
    for way in ["name", "path", "local", "deep", "closed", "late", "twice"] {
        let tested = (|| {
            let program = Program::named(Kind::Special, "mpi_by_dlopen")?;
            Directory::new("own-place")?.run(|directory| {
                let trial = Trial::new(&program, RANKS, directory)?.with(&[way]);
                let library = installed("libmpi.so.40")?;
                let start = |mut command: Command| {
                    command.arg(trial.executable()).arg(way);
                    command.env("TRIAL_LIBMPI", &library);
                    trial.launch(command)
                };
                let mut job = start(job::under_stillpoint(RANKS, &trial.epochs_at())?)?;
                trial.ready(&mut job)?;
                trial.suspended(job)?;
                let job = trial.resumed()?;
                trial.go()?;
                trial.ends_well(job)?;
                let native = start(job::mpirun(RANKS))?;
                trial.ends_well(native)?;
                Ok(())
            })
        })();
        if let Err(failed) = tested {
            panic!("{way}: {failed}");
        }
    }
}

#[test]
fn a_program_that_needs_another_name_of_libmpi_has_that_too() {
    let tested = (|| {
        let program = Program::named(Kind::Special, "needs_more")?;
        let said = Command::new(stillpoint_tests::place::stillpoint()?)
            .args(["check", "--"])
            .arg(program.build()?)
            .output();
        let said = said.map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        ensure!(said.contains("needs its ompi_mpi_finalize"), "{said}");
        restarts(&program, RANKS)
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

/// Returns the path of an installed library, as the loader's cache has it.
fn installed(name: &str) -> Result<PathBuf, Failed> {
    let path = stillpoint_linkage::found(name, |variable| env::var_os(variable));
    path.ok_or_else(|| format!("{name} is not installed"))
}

/// The files of the application's code, while the program waits.
fn loaded(program: &str) -> Result<Vec<String>, Failed> {
    let program = Program::named(Kind::Still, program)?;
    let mut found = vec![];
    Directory::new("own-place")?.run(|directory| {
        let trial = Trial::new(&program, RANKS, directory)?;
        let mut job = trial.split()?;
        trial.ready(&mut job)?;
        let read =
            |path: String| fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"));
        let launcher = job.id();
        let ranks = read(format!("/proc/{launcher}/task/{launcher}/children"))?;
        for rank in ranks.split_whitespace() {
            let maps = read(format!("/proc/{rank}/maps"))?;
            found.extend(maps.lines().filter_map(of_application));
        }
        trial.go()?;
        trial.ends_well(job)?;
        Ok(())
    })?;
    Ok(found)
}

/// Returns the library that a line of `/proc/PID/maps` shows, if it is mapped in the arena.
fn of_application(line: &str) -> Option<String> {
    let start = usize::from_str_radix(line.split('-').next()?, 16).ok()?;
    let path = &line[line.find('/')?..];
    let upper = (0x5501_0000_0000..0x5555_0000_0000).contains(&start);
    (upper && path.contains(".so")).then(|| path.to_owned())
}

#[test]
fn the_applications_half_holds_no_other_mpi() {
    for program in ["blocking_collectives", "fortran_use_mpi_f08"] {
        let found = loaded(program).unwrap_or_else(|failed| panic!("{program}: {failed}"));
        let is_ours = |path: &&String| path.contains("/libstillpoint_upper_openmpi.so");
        assert!(found.iter().any(|it| is_ours(&it)), "{program}: {found:?}");
        for library in ["/libmpi.so", "/libopen-", "libpmix", "libhwloc", "libevent"] {
            let there = found.iter().find(|path| path.contains(library));
            assert_eq!(there, None, "{program}");
        }
    }
}
