//! A real MPI that fails during a probe for messages: the checkpoint is refused by name, the job runs on, and is checkpointed
//! when MPI has recovered.

use std::fs;
use std::path::Path;
use std::process::Command;

use stillpoint_tests::command::{self, exit};
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::{Failed, job};

#[test]
fn a_probe_that_fails_refuses_the_checkpoint_until_it_works_again() {
    let tested = (|| {
        let program = Program::named(Kind::Still, "clocks")?;
        Directory::new("failing-mpi")?.run(|directory| run(&Trial::new(&program, 2, directory)?))
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

fn run(trial: &Trial) -> Result<(), Failed> {
    let (target, fails) = (trial.epochs_at(), trial.directory.file("fails"));
    let mut command = job::under_stillpoint(2, &target)?;
    command.arg(trial.executable()).args(&trial.arguments);
    command.env("LD_LIBRARY_PATH", library(trial.directory)?);
    command.env("FAILING_PROBE", &fails);
    let mut job = trial.launch(command)?;
    trial.ready(&mut job)?;
    command::checkpoint(trial.directory, &target)?.expect(exit::DONE)?;
    for _ in 0..2 {
        fs::write(&fails, "").map_err(|error| error.to_string())?;
        let refused = command::checkpoint(trial.directory, &target)?;
        refused.expect_reason(exit::REFUSED, "MPI_Iprobe")?;
        fs::remove_file(&fails).map_err(|error| error.to_string())?;
        command::checkpoint(trial.directory, &target)?.expect(exit::DONE)?;
    }
    trial.go()?;
    trial.ends_well(job)?;
    Ok(())
}

/// Makes a folder with a `libmpi.so.40` that takes the place of the real one, which it loads under another name.
fn library(directory: &Directory) -> Result<std::path::PathBuf, Failed> {
    let folder = directory.file("library");
    let stub = folder.join("stub");
    fs::create_dir_all(&stub).map_err(|error| error.to_string())?;
    let told = |words: &str| -> Result<String, Failed> {
        let output = Command::new("mpicc").arg(words).output();
        let output = output.map_err(|error| error.to_string())?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let libraries = told("--showme:libdirs")?;
    let real = libraries
        .split_whitespace()
        .map(|place| Path::new(place).join("libmpi.so"));
    let real = real.into_iter().find_map(|path| path.canonicalize().ok());
    let real = real.ok_or("mpicc tells of no libmpi.so")?;
    // The linker records the name that a library gives itself.
    gcc(&[
        "-Wl,-soname,libmpi_real.so".into(),
        "-o".into(),
        stub.join("libmpi_real.so"),
        "-xc".into(),
        "/dev/null".into(),
    ])?;
    let mut words = vec![
        "-Wl,-soname,libmpi.so.40,--no-as-needed".into(),
        "-o".into(),
    ];
    words.push(folder.join("libmpi.so.40"));
    words.push(place::sources().join("libraries/failing_probe.c"));
    words.extend(told("--showme:compile")?.split_whitespace().map(Into::into));
    words.extend(["-L".into(), stub, "-lmpi_real".into()]);
    gcc(&words)?;
    std::os::unix::fs::symlink(real, folder.join("libmpi_real.so"))
        .map_err(|error| error.to_string())?;
    Ok(folder)
}

fn gcc(words: &[std::path::PathBuf]) -> Result<(), Failed> {
    let output = Command::new("gcc")
        .args(["-shared", "-fPIC"])
        .args(words)
        .output();
    let output = output.map_err(|error| error.to_string())?;
    stillpoint_tests::ensure!(
        output.status.success(),
        "gcc: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
