//! Files that were open through MPI when a job was suspended. If a restart finds a file changed, it reports that and changes nothing; a
//! file that has become longer is cut back.

use std::fs;
use std::time::Duration;

use stillpoint_tests::place::Directory;
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::{Failed, ensure};

/// The longest time until a restart refuses.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_restart_finds_mpi_files_as_they_were() {
    let tested = (|| {
        let program = Program::named(Kind::Still, "files_positions")?;
        Directory::new("mpi-files")?.run(|directory| {
            let trial = Trial::new(&program, 2, directory)?;
            let mut job = trial.split()?;
            trial.ready(&mut job)?;
            trial.suspended(job)?;
            found(&trial)
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

/// Not natively, because Open MPI 4.1 deletes some of the files that are made after the close.
#[test]
fn a_file_that_is_made_after_another_was_deleted_on_close_stays() {
    let tested = (|| {
        let program = Program::named(Kind::Special, "deleted_on_close")?;
        Directory::new("deleted-on-close")?.run(|directory| {
            let trial = Trial::new(&program, 2, directory)?;
            let mut job = trial.split()?;
            trial.ready(&mut job)?;
            trial.go()?;
            trial.ends_well(job).map(drop)
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

fn found(trial: &Trial) -> Result<(), Failed> {
    let failed = |error: std::io::Error| error.to_string();
    let (path, other) = (trial.directory.file("all"), trial.directory.file("other"));
    let bytes = fs::read(&path).map_err(failed)?;

    fs::rename(&path, &other).map_err(failed)?;
    refused(
        trial,
        "cannot open its MPI file FILE: No such file or directory",
    )?;
    fs::create_dir(&path).map_err(failed)?;
    refused(trial, "its MPI file FILE is not a regular file any more")?;
    fs::remove_dir(&path).map_err(failed)?;
    fs::write(&path, &bytes[1..]).map_err(failed)?;
    let lengths = format!(
        "its MPI file FILE has {} bytes now and had {} at the checkpoint",
        bytes.len() - 1,
        bytes.len()
    );
    refused(trial, &lengths)?;

    let mut longer = bytes.clone();
    longer.extend(b"written after the checkpoint");
    fs::write(&path, &longer).map_err(failed)?;
    trial.go()?;
    trial.ends_well(trial.restarted()?)?;
    // Ten integers of each rank, as in an undisturbed run.
    let now = fs::metadata(&path).map_err(failed)?.len();
    ensure!(now == 80, "the file has {now} bytes");
    Ok(())
}

/// Checks that a restart refuses the file with these words, and changes nothing.
fn refused(trial: &Trial, words: &str) -> Result<(), Failed> {
    let before = fs::read(trial.directory.file("half.0")).ok();
    let ended = trial.restarted()?.end(PATIENCE)?;
    let name = trial.directory.file("all").display().to_string();
    let expected = words.replace("FILE", &name);
    ensure!(ended.status != 0, "it was restarted: {}", ended.show());
    ensure!(ended.stderr.contains(&expected), "{}", ended.show());
    ensure!(
        fs::read(trial.directory.file("half.0")).ok() == before,
        "a file was changed"
    );
    Ok(())
}
