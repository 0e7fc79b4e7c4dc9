//! A power failure just after a commit: a copy of the disk at that moment has what was written to the disk, and nothing that was in memory alone.
//!
//! The epoch in it is restarted, since the files that the program has open were synced before the commit. Without that sync the restart refuses. Needs root.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use stillpoint_tests::command::{self, exit};
use stillpoint_tests::job::{self, Job};
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::{PATIENCE, Trial};
use stillpoint_tests::{Failed, ensure};

/// XFS takes no smaller disk.
const BYTES: u64 = 320 << 20;

mod ext4 {
    #[test]
    fn an_epoch_is_restarted_after_a_power_failure() {
        super::is_restarted("ext4");
    }

    #[test]
    fn without_a_sync_the_program_s_files_are_lost_and_the_restart_says_so() {
        super::says_what_is_lost("ext4");
    }
}

mod xfs {
    #[test]
    fn an_epoch_is_restarted_after_a_power_failure() {
        super::is_restarted("xfs");
    }

    #[test]
    fn without_a_sync_the_program_s_files_are_lost_and_the_restart_says_so() {
        super::says_what_is_lost("xfs");
    }
}

fn is_restarted(file_system: &'static str) {
    on_trial(file_system, "open", |trial, disk| {
        let target = disk.path.join("d");
        let again = launch(trial, disk, job::restarted(trial.ranks, &target)?)?;
        let go = disk.path.join("go");
        fs::write(&go, b"").map_err(|error| format!("{}: {error}", go.display()))?;
        trial.ends_well(again).map(drop)
    });
}

fn says_what_is_lost(file_system: &'static str) {
    on_trial(file_system, "off", |trial, disk| {
        let target = disk.path.join("d");
        let again = launch(trial, disk, job::restarted(trial.ranks, &target)?)?;
        let ended = again.end(PATIENCE)?;
        let named = ended.stderr.contains("appended.") && ended.stderr.contains("bytes");
        ensure!(ended.status != 0 && named, "{}", ended.show());
        Ok(())
    });
}

/// Tries what is left on a disk that was cut off after a commit.
fn on_trial(
    file_system: &'static str,
    sync: &'static str,
    test: impl FnOnce(&Trial, &Disk) -> Result<(), Failed>,
) {
    let tested = (|| {
        let program = Program::named(Kind::Moving, "numbered_lines")?;
        Directory::new(&format!("power-loss-{file_system}"))?.run(|directory| {
            let trial = Trial::new(&program, 2, directory)?.with(&[sync]);
            let disk = cut_off_after_a_commit(&trial, file_system)?;
            test(&trial, &disk)
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

/// Runs the program on a disk until an epoch is committed; the disk as it is then.
fn cut_off_after_a_commit(trial: &Trial, file_system: &'static str) -> Result<Disk, Failed> {
    let disk = Disk::new(trial.directory, file_system)?;
    let target = disk.path.join("d");
    let mut command = job::mpirun(trial.ranks);
    command.arg(place::stillpoint()?).args(["run", "--dir"]);
    command.arg(&target).arg("--sync-files");
    command
        .args(&trial.arguments)
        .arg("--")
        .arg(trial.executable());
    let mut job = launch(trial, &disk, command)?;
    let ready = disk.path.join("ready.0");
    job.until("ready", PATIENCE, |_| ready.exists())?;
    command::checkpoint(trial.directory, &target)?.expect(exit::DONE)?;
    let cut = disk.cut_off()?;
    drop(job);
    disk.replaced_by(&cut)
}

fn launch(trial: &Trial, disk: &Disk, mut command: Command) -> Result<Job, Failed> {
    command.env("TRIAL_DIR", &disk.path).current_dir(&disk.path);
    Job::start(command, trial.directory)
}

/// A file system on a disk that is a file.
struct Disk {
    file_system: &'static str,
    file: PathBuf,
    /// Its mount point.
    path: PathBuf,
}

impl Disk {
    fn new(directory: &Directory, file_system: &'static str) -> Result<Disk, Failed> {
        let disk = Disk {
            file_system,
            file: directory.file("disk.img"),
            path: directory.file("disk"),
        };
        let failed = |error: std::io::Error| format!("{}: {error}", disk.file.display());
        let file = File::create(&disk.file).map_err(failed)?;
        file.set_len(BYTES).map_err(failed)?;
        let mut make = Command::new("mkfs");
        run(make.args(["-t", file_system, "-q"]).arg(&disk.file))?;
        fs::create_dir(&disk.path).map_err(failed)?;
        disk.mounted()
    }

    fn mounted(self) -> Result<Disk, Failed> {
        let mut mount = Command::new("mount");
        // The copy has the name of the disk that may not have gone yet.
        let options = match self.file_system {
            "xfs" => "loop,nouuid",
            _ => "loop",
        };
        mount.args(["-o", options]).arg(&self.file).arg(&self.path);
        run(&mut mount)?;
        Ok(self)
    }

    /// A copy of what has reached the disk.
    fn cut_off(&self) -> Result<PathBuf, Failed> {
        let cut = self.file.with_extension("cut");
        let mut copy = Command::new("cp");
        run(copy.arg("--sparse=always").arg(&self.file).arg(&cut))?;
        Ok(cut)
    }

    /// The copy in its place.
    fn replaced_by(self, cut: &Path) -> Result<Disk, Failed> {
        let (path, file_system) = (self.path.clone(), self.file_system);
        drop(self);
        let file = cut.to_owned();
        Disk {
            file_system,
            file,
            path,
        }
        .mounted()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A process of the job may not have gone yet.
        let _ = run(Command::new("umount").arg("--lazy").arg(&self.path));
    }
}

fn run(command: &mut Command) -> Result<(), Failed> {
    let said = command.output();
    let said = said.map_err(|error| format!("{}: {error}", command::describe(command)))?;
    ensure!(
        said.status.success(),
        "{}: {}",
        command::describe(command),
        String::from_utf8_lossy(&said.stderr)
    );
    Ok(())
}
