//! The stubs stand in libmpi's own place: tools that stand before libmpi see the program's calls and no others, programs that load MPI by themselves get the
//! stubs, and the application's half holds no other MPI.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use stillpoint_tests::halves::{hold_only_stubs, hold_only_stubs_in_python};
use stillpoint_tests::job::Job;
use stillpoint_tests::mpis::Mpi;
use stillpoint_tests::place::{Directory, binaries};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::{PATIENCE, Trial, restarts};
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

#[test]
fn a_tool_that_wraps_names_of_fortran_counts_what_it_counts_natively() {
    let tested = (|| {
        let program = Program::named(Kind::Still, "fortran_mpif_h")?;
        Directory::new("own-place")?.run(|directory| {
            let trial = Trial::new(&program, RANKS, directory)?;
            let tool = directory.file("libtool.so");
            let mut build = Command::new("gcc");
            build.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&tool);
            build.arg(sources().join("libraries/fortran_tool.c"));
            succeeds(build)?;
            let with_tool = |mut command: Command| {
                command.args(["env", &format!("LD_PRELOAD={}", tool.display())]);
                command.arg(trial.executable());
                trial.launch(command)
            };
            let mut job = with_tool(job::under_stillpoint(RANKS, &trial.epochs_at())?)?;
            trial.ready(&mut job)?;
            trial.suspended(job)?;
            let job = trial.resumed()?;
            trial.go()?;
            let under_run = reports(&trial.ends_well(job)?.stdout);
            let native = reports(&trial.ends_well(with_tool(job::mpirun(RANKS))?)?.stdout);
            let counted = |line: &String| !line.contains(" 0 ");
            ensure!(
                native.len() == RANKS as usize && native.iter().all(counted),
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

/// Builds a library that gives itself a name of its own, and has these names.
fn library_with(names: &[&str], folder: &Path) -> Result<PathBuf, Failed> {
    let (source, library) = (folder.join("maker.c"), folder.join("libmpi_maker.so.3"));
    let text = format!("int {};\n", names.join(", "));
    fs::write(&source, text).map_err(|error| error.to_string())?;
    let mut command = Command::new("gcc");
    command.args(["-shared", "-fPIC", "-Wl,-soname,libmpi_maker.so.3", "-o"]);
    command.arg(&library).arg(&source);
    succeeds(command)?;
    Ok(library)
}

const OF_EVERY_MPI: [&str; 3] = ["PMPI_Init", "PMPI_Comm_rank", "PMPI_Type_size"];

/// Has a program open such a library by its path, suspends it and carries it on if it runs; returns its errors if it ends at once.
fn with_maker(names: &[&str], runs: bool) -> Result<String, Failed> {
    let program = Program::named(Kind::Special, "mpi_by_dlopen")?;
    let mut said = String::new();
    Directory::new("own-place")?.run(|directory| {
        let trial = Trial::new(&program, RANKS, directory)?.with(&["only"]);
        let all: Vec<&str> = OF_EVERY_MPI.iter().chain(names).copied().collect();
        let library = library_with(&all, directory.path())?;
        let mut command = job::under_stillpoint(RANKS, &trial.epochs_at())?;
        command.arg(trial.executable()).arg("only");
        command.env("TRIAL_LIBMPI", &library);
        let mut job = trial.launch(command)?;
        if !runs {
            let ended = job.end(PATIENCE)?;
            ensure!(ended.status == 126, "{}", ended.show());
            said = ended.stderr;
            return Ok(());
        }
        trial.ready(&mut job)?;
        trial.suspended(job)?;
        let job = trial.resumed()?;
        trial.go()?;
        trial.ends_well(job)?;
        Ok(())
    })?;
    Ok(said)
}

#[test]
fn an_mpi_under_a_name_of_its_makers_is_the_stubs_too() {
    with_maker(&["ompi_mpi_comm_world"], true).unwrap_or_else(|failed| panic!("{failed}"));
}

#[test]
fn an_mpi_of_another_kind_is_refused_by_its_name() {
    for (names, kind) in [
        (&["MPI_UNWEIGHTED"][..], "MPICH"),
        (&["maker_of_its_own"], "an MPI that is not known here"),
    ] {
        let said = with_maker(names, false).unwrap_or_else(|failed| panic!("{failed}"));
        let line = format!("this program has loaded {kind} (");
        assert!(said.contains(&line), "{kind}: {said}");
        assert!(
            said.contains("libmpi_maker.so.3") && said.contains("[other-mpi]"),
            "{said}"
        );
    }
}

#[test]
fn another_installation_answers_for_a_library_that_is_loaded() {
    let tested = (|| {
        let program = Program::named(Kind::Special, "mpi_by_dlopen")?;
        Directory::new("own-place")?.run(|directory| {
            let trial = Trial::new(&program, RANKS, directory)?.with(&["name"]);
            let further = directory.file("further");
            fs::create_dir(&further).map_err(|error| error.to_string())?;
            let further = further.join("libmpi.so.40");
            std::os::unix::fs::symlink(installed("libmpi.so.40")?, &further)
                .map_err(|error| error.to_string())?;
            let mut command = job::under_stillpoint(RANKS, &trial.epochs_at())?;
            command.arg(trial.executable()).arg("name");
            command.env("TRIAL_FURTHER", &further);
            let mut job = trial.launch(command)?;
            trial.ready(&mut job)?;
            trial.suspended(job)?;
            let other = directory.file("installation");
            fs::create_dir(&other).map_err(|error| error.to_string())?;
            for name in [
                "stillpoint",
                "stillpoint-lower-openmpi",
                "libstillpoint_upper_openmpi.so",
                "libstillpoint_preload.so",
            ] {
                fs::copy(binaries().join(name), other.join(name))
                    .map_err(|error| format!("{name}: {error}"))?;
            }
            let mut command = job::mpirun(RANKS);
            command.arg(other.join("stillpoint")).arg("restart");
            command.arg(trial.epochs_at());
            let mut job = trial.launch(command)?;
            trial.runs_again(&mut job)?;
            trial.go()?;
            trial.ends_well(job)?;
            Ok(())
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

/// Makes a copy of the installed libmpi that says of itself that it takes a GPU's memory.
fn that_takes_gpus(folder: &Path) -> Result<(), Failed> {
    const SAYS_YES: [u8; 6] = [0xb8, 1, 0, 0, 0, 0xc3]; // mov eax, 1; ret
    let library = installed("libmpi.so.40")?;
    let of = |command: &str, option: &str| {
        let output = Command::new(command).arg(option).arg(&library).output();
        let output = output.map_err(|error| format!("{command}: {error}"))?;
        Ok::<_, Failed>(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let hex = |text: &str| usize::from_str_radix(text, 16).map_err(|error| error.to_string());
    let names = of("nm", "-D")?;
    let line = names
        .lines()
        .find(|line| line.ends_with(" T MPIX_Query_cuda_support"));
    let line = line.ok_or("libmpi has no MPIX_Query_cuda_support")?;
    let address = hex(line.split(' ').next().unwrap_or_default())?;
    let sections = of("readelf", "-SW")?;
    let text = sections
        .lines()
        .find_map(|line| line.split_once("] .text "));
    let fields: Vec<&str> = text.map_or(vec![], |text| text.1.split_whitespace().collect());
    ensure!(fields.len() > 3, "{sections}");
    let at = address - hex(fields[1])? + hex(fields[2])?;
    let mut bytes = fs::read(&library).map_err(|error| error.to_string())?;
    bytes[at..at + SAYS_YES.len()].copy_from_slice(&SAYS_YES);
    let copy = folder.join("libmpi.so.40");
    fs::write(copy, bytes).map_err(|error| error.to_string())
}

#[test]
fn a_program_hears_what_the_real_mpi_says_of_gpus() {
    let tested = (|| {
        let program = Program::named(Kind::Special, "asks_for_gpus")?;
        Directory::new("own-place")?.run(|directory| {
            let trial = Trial::new(&program, 1, directory)?;
            that_takes_gpus(directory.path())?;
            let said = |job: Job| Ok::<_, Failed>(job.end(PATIENCE)?.stdout);
            let natively = said(trial.native()?)?;
            let mut command = job::under_stillpoint(1, &trial.epochs_at())?;
            command.arg(trial.executable());
            command.env("LD_LIBRARY_PATH", directory.path());
            let with_gpus = said(trial.launch(command)?)?;
            ensure!(natively == "it says 0\n", "natively: {natively}");
            ensure!(with_gpus == "it says 1\n", "under run: {with_gpus}");
            Ok(())
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
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

#[test]
fn the_applications_half_holds_no_other_mpi() {
    let mpis = stillpoint_tests::place::target().join("mpis");
    let mpich = Mpi::named(&mpis, "mpich-debian").unwrap_or_else(|failed| panic!("{failed}"));
    for (on, fortran, library) in [
        (Mpi::own(), "fortran_use_mpi_f08", "libmpi.so.40"),
        (mpich, "fortran_use_mpi", "libmpich.so.12"),
    ] {
        for program in ["blocking_collectives", fortran] {
            hold_only_stubs(program, &on)
                .unwrap_or_else(|failed| panic!("{program} on {}: {failed}", on.name));
        }
        hold_only_stubs_in_python(library, &on)
            .unwrap_or_else(|failed| panic!("Python on {}: {failed}", on.name));
    }
}
