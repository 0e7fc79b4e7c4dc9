//! An upper half of an older contract. A lower half that serves the contract runs it, saves it and restarts it; other lower halves refuse it in one
//! line.
//!
//! Images that earlier builds have written are kept in `images`, and restarted. The tests also make an older library from this build's, by changing
//! every occurrence of the number of its contract. `wrappers/src/contract.rs` tests that the contracts' definitions agree.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use stillpoint_tests::command::exit;
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::{Failed, ensure, job};

const PATIENCE: Duration = Duration::from_secs(100);

/// Returns the numbers of served contracts, this build's last.
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

/// Makes a copy of this build's library with the number of another contract.
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

/// Checks that a file of an epoch names its contract, in JSON.
fn says(file: &Path, contract: u32, blank: &str) -> Result<(), Failed> {
    let bytes = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let said = format!("\"gate_version\":{blank}{contract}");
    let there = bytes
        .windows(said.len())
        .any(|bytes| bytes == said.as_bytes());
    ensure!(there, "{} does not say {contract:08x}", file.display());
    Ok(())
}

#[test]
fn an_epoch_of_every_contract_that_is_served_restarts() {
    let served = served();
    assert!(served.len() > 1, "{served:?}");
    for contract in served {
        with_library(contract, |trial, mut job| {
            trial.ready(&mut job)?;
            trial.suspended(job)?;
            let epoch = trial.epochs_at().join("epoch-000001");
            says(&epoch.join("rank-000000.img"), contract, "")?;
            says(&epoch.join("manifest"), contract, " ")?;
            let job = trial.restarted()?;
            trial.go()?;
            trial.ends_well(job)?;
            Ok(())
        });
    }
}

/// A part of the reason on a machine that lacks something the image needs.
const LACKS: &str = "restart on a processor that has them";

/// A contract that no build has alone: the next one came with it.
const NEVER_BUILT: u32 = 0x390b_4e2f;

/// Restarts a stored image, whose epoch matches everything but the processor and the user.
fn restarts(image: &Path) -> Result<(), Failed> {
    Directory::new("stored")?.run(|directory| {
        let epochs = directory.epochs();
        let make = || {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(epochs)
        };
        make().map_err(|error| format!("{}: {error}", epochs.display()))?;
        let unpacked = Command::new("tar")
            .args(["--zstd", "--no-same-owner", "-xf"])
            .arg(image)
            .arg("-C")
            .arg(epochs)
            .status()
            .map_err(|error| format!("tar: {error}"))?;
        ensure!(unpacked.success(), "tar: {unpacked} (is zstd installed?)");
        let job = job::Job::start(job::restarted(2, epochs)?, directory)?;
        let ended = job.end(PATIENCE)?;
        if ended.status != 0 && ended.stderr.contains(LACKS) {
            eprintln!("{}: not tried here: {}", image.display(), ended.stderr);
            return Ok(());
        }
        let right = |rank: u32| ended.stdout.contains(&format!("RIGHT {rank}"));
        ensure!(
            ended.status == 0 && right(0) && right(1),
            "{}",
            ended.show()
        );
        Ok(())
    })
}

#[test]
fn every_stored_image_restarts() {
    let served = served();
    for contract in &served {
        let name = format!("tests/images/{contract:08x}.tar.zst");
        let image = place::project().join(&name);
        // The newest contract may still change until another follows it.
        let may_lack = *contract == NEVER_BUILT || served.last() == Some(contract);
        if may_lack && !image.exists() {
            continue;
        }
        assert!(
            image.exists(),
            "{name} is missing: tests/images/make, with a build of that contract"
        );
        if !nix::unistd::geteuid().is_root() {
            eprintln!("{name}: not tried: only root can become the user whose it is");
            continue;
        }
        if let Err(failed) = restarts(&image) {
            panic!("{name}: {failed}");
        }
    }
}

#[test]
fn every_stored_image_is_of_a_contract_that_is_served() {
    let served = served();
    for entry in fs::read_dir(place::project().join("tests/images")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(number) = name.strip_suffix(".tar.zst") else {
            continue;
        };
        let number = u32::from_str_radix(number, 16);
        assert!(
            number.is_ok_and(|number| served.contains(&number)),
            "{name}"
        );
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
