//! An upper half of an older contract: a lower half that serves it runs it, writes it down and restarts it; another refuses it in one line.
//!
//! The older library is this build's with the number of its contract changed wherever it stands. What the contracts' definitions have in
//! common is seen to in `wrappers/src/contract.rs`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use stillpoint_tests::command::exit;
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::turn::Turn;
use stillpoint_tests::{Failed, ensure, job};

const PATIENCE: Duration = Duration::from_secs(100);

/// Numbers of contracts that are served, this build's last.
fn served() -> Vec<u32> {
    let path = place::project().join("wrappers/contract.txt");
    let text = fs::read_to_string(path).unwrap();
    let number = |line: &str| {
        let (number, rest) = line.split_once(' ')?;
        let number = u32::from_str_radix(number, 16).ok()?;
        rest.starts_with("served ").then_some(number)
    };
    text.lines().filter_map(number).collect()
}

/// This build's library as if it had been built with that contract.
fn library(directory: &Directory, contract: u32) -> Result<PathBuf, Failed> {
    let this = *served().last().ok_or("no contract is served")?;
    let name = "libstillpoint_upper_openmpi.so";
    let mut bytes = fs::read(place::binaries().join(name)).map_err(|error| error.to_string())?;
    let (from, to) = (this.to_le_bytes(), contract.to_le_bytes());
    let mut changed = 0;
    for at in 0..bytes.len() - 4 {
        if bytes[at..at + 4] == from {
            bytes[at..at + 4].copy_from_slice(&to);
            changed += 1;
        }
    }
    // The number that the lower half reads, the one in the hooks, and the one that the constructor compares.
    ensure!(changed >= 3, "the number stands in {changed} places");
    let path = directory.file(name);
    fs::write(&path, bytes)
        .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)))
        .map_err(|error| error.to_string())?;
    Ok(path)
}

fn with_library(contract: u32, test: impl FnOnce(&Trial, job::Job) -> Result<(), Failed>) {
    let tested = (|| {
        let program = Program::named(Kind::Still, "datatype_constructors")?;
        let _turn = Turn::take()?;
        Directory::new("contract")?.run(|directory| {
            let trial = Trial::new(&program, 2, directory)?;
            let mut command = job::under_stillpoint(2, &trial.epochs_at())?;
            command.arg(trial.executable());
            command.env("STILLPOINT_UPPER", library(directory, contract)?);
            let job = trial.launch(command)?;
            test(&trial, job)
        })
    })();
    if let Err(failed) = tested {
        panic!("{contract:08x}: {failed}");
    }
}

#[test]
fn an_epoch_of_every_contract_that_is_served_restarts() {
    let served = served();
    assert!(served.len() > 1, "{served:?}");
    for contract in served {
        with_library(contract, |trial, mut job| {
            trial.ready(&mut job)?;
            trial.suspended(job)?;
            let epoch = trial.epochs_at().join("epoch-000001/rank-000000.img");
            let image =
                fs::read(&epoch).map_err(|error| format!("{}: {error}", epoch.display()))?;
            let said = format!("\"gate_version\":{contract}");
            ensure!(
                image
                    .windows(said.len())
                    .any(|bytes| bytes == said.as_bytes()),
                "the image does not say {contract:08x}"
            );
            let job = trial.restarted()?;
            trial.go()?;
            trial.ends_well(job)?;
            Ok(())
        });
    }
}

#[test]
fn a_contract_that_nobody_knows_is_refused_in_one_line() {
    with_library(0x0bad_cafe, |_, job| {
        let ended = job.end(PATIENCE)?;
        ensure!(ended.status == exit::FAILED, "{}", ended.show());
        let stderr = ended.stderr.lines();
        let said: Vec<&str> = stderr
            .filter(|line| line.starts_with("stillpoint:"))
            .collect();
        let this = served().last().map(|number| format!("{number:08x}"));
        ensure!(
            !said.is_empty()
                && said.iter().all(|line| {
                    line.contains("0badcafe")
                        && this.as_ref().is_some_and(|this| line.contains(this))
                }),
            "{said:?}"
        );
        Ok(())
    });
}
