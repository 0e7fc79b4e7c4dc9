//! Private mappings of files. Pages that the program has not written to are left to the file, and a restart finds the file unchanged, or is
//! refused.

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::Value;
use stillpoint_tests::command::{self, exit};
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::trial::Trial;
use stillpoint_tests::{Failed, ensure, job, reason};

const PATIENCE: Duration = Duration::from_secs(100);
/// The length of the file, and the largest image that leaves it out.
const LARGE: u64 = 300 << 20;
const SMALL: u64 = 2 << 20;
/// A smaller length, where it suffices.
const LITTLE: u64 = 8 << 20;

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> Failed {
    let path = path.display().to_string();
    move |error| format!("{path}: {error}")
}

/// Makes the file that the program needs.
fn data(path: &Path, bytes: u64) -> Result<(), Failed> {
    let make = || {
        let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
        for word in 1..=bytes / 8 {
            file.write_all(&word.to_le_bytes())?;
        }
        file.into_inner().map_err(std::io::Error::from).map(drop)
    };
    make().map_err(failed(path))
}

/// A job that has mapped a file.
struct Mapping<'a> {
    trial: &'a Trial<'a>,
    file: PathBuf,
}

impl Mapping<'_> {
    /// Runs the job until it is ready; `how` are options of `run`.
    fn started(&self, how: &[&str], library: Option<&Path>) -> Result<job::Job, Failed> {
        let mut command = job::mpirun(2);
        command.arg(place::stillpoint()?).arg("run").args(how);
        command.arg("--dir").arg(self.trial.epochs_at()).arg("--");
        command
            .arg(self.trial.executable())
            .arg(&self.file)
            .args(library);
        let mut job = self.trial.launch(command)?;
        self.trial.ready(&mut job)?;
        Ok(job)
    }

    fn suspended(&self, how: &[&str]) -> Result<(), Failed> {
        self.trial.suspended(self.started(how, None)?)
    }

    /// Returns the image of rank 0 in the newest epoch.
    fn image(&self) -> Result<PathBuf, Failed> {
        let epochs = command::epochs(&self.trial.epochs_at());
        let newest = epochs.last().ok_or("there is no epoch")?;
        let name = format!("epoch-{newest:06}/rank-000000.img");
        Ok(self.trial.epochs_at().join(name))
    }

    fn image_bytes(&self) -> Result<u64, Failed> {
        let image = self.image()?;
        let about = fs::metadata(&image).map_err(failed(&image))?;
        Ok(about.len())
    }

    /// Returns `inspect`'s description of rank 0.
    fn inspected(&self) -> Result<Value, Failed> {
        let epochs = self.trial.epochs_at();
        let words = ["inspect".as_ref(), "--json".as_ref(), epochs.as_os_str()];
        let answer = command::stillpoint(self.trial.directory, words)?;
        Ok(answer.expect(exit::DONE)?.json()?["images"][0].clone())
    }

    /// Returns the bytes that rank 0's image leaves to a file.
    fn left_to(&self, path: &Path) -> Result<Option<u64>, Failed> {
        let image = self.inspected()?;
        let files = image["mapped_files"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let file = files
            .iter()
            .find(|file| file["path"] == path.to_str().unwrap_or_default());
        Ok(file.and_then(|file| file["referred_bytes"].as_u64()))
    }

    fn verified(&self) -> Result<String, Failed> {
        let epochs = self.trial.epochs_at();
        let answer = command::stillpoint(
            self.trial.directory,
            ["verify".as_ref(), epochs.as_os_str()],
        )?;
        Ok(answer.expect(exit::DONE)?.stdout)
    }

    /// Restarts the job, and has it check its memory. Memory `kept` in the image need not be a file's.
    fn restarts(&self, kept: bool) -> Result<(), Failed> {
        if kept {
            let place = self.trial.directory.file("kept");
            fs::write(&place, b"").map_err(failed(&place))?;
        }
        let job = self.trial.restarted()?;
        self.trial.go()?;
        self.trial.ends_well(job)?;
        Ok(())
    }

    /// Checks that a restart is refused in one line that names the file, and that `verify` says so.
    fn is_refused(&self, what: &str) -> Result<(), Failed> {
        let file = self.file.to_str().unwrap_or_default();
        let words = [file, what, "--mapped-files keep"];
        let told = self.verified()?;
        let note = told.lines().find(|line| line.starts_with("note: "));
        let note = note.ok_or_else(|| format!("verify notes nothing: {told}"))?;
        ensure!(
            words.iter().all(|word| note.contains(word)),
            "verify: {note}"
        );
        let ended = self.trial.restarted()?.end(PATIENCE)?;
        ensure!(ended.status != 0, "{}", ended.show());
        reason::one(&ended.stderr, &words).map_err(|failed| format!("{failed}\n{}", ended.show()))
    }
}

fn with_file(bytes: u64, test: impl FnOnce(&Mapping) -> Result<(), Failed>) {
    let tested = (|| {
        let program = Program::named(Kind::Special, "mapped_file")?;
        Directory::new("mapped")?.run(|directory| {
            let trial = Trial::new(&program, 2, directory)?;
            let file = directory.file("data");
            data(&file, bytes)?;
            test(&Mapping {
                trial: &trial,
                file,
            })
        })
    })();
    if let Err(failed) = tested {
        panic!("{failed}");
    }
}

#[test]
fn what_was_not_written_to_is_in_no_image_and_comes_from_the_file() {
    with_file(LARGE, |mapping| {
        let job = mapping.started(&["--mapped-files", "refer"], None)?;
        let epochs = mapping.trial.epochs_at();
        for _ in 0..2 {
            command::checkpoint(mapping.trial.directory, &epochs)?.expect(exit::DONE)?;
            let bytes = mapping.image_bytes()?;
            ensure!(bytes < SMALL, "the image has {bytes} bytes");
        }
        mapping.trial.suspended(job)?;
        // The whole file, the head and four more pages, and the page at the end, without three pages that are the
        // process's own.
        let pages = (LARGE + (1 << 20)) / 4096 + 4 + 1 - 3;
        let left = mapping.left_to(&mapping.file)?;
        ensure!(
            left == Some(pages * 4096),
            "{left:?} bytes are left to the file, not {pages} pages"
        );
        let told = mapping.verified()?;
        ensure!(!told.contains("note:"), "{told}");
        // The same again, after a restart.
        let mut command = job::restarted(2, &epochs)?;
        command.args(["--mapped-files", "refer"]);
        let mut job = mapping.trial.launch(command)?;
        job.until("running again", PATIENCE, |_| {
            let state = command::state(mapping.trial.directory, &epochs);
            state.as_deref() == Ok("running")
        })?;
        mapping.trial.suspended(job)?;
        let bytes = mapping.image_bytes()?;
        ensure!(bytes < SMALL, "after a restart the image has {bytes} bytes");
        mapping.restarts(false)
    });
}

#[test]
fn a_file_that_has_changed_is_refused_and_an_equal_one_is_not() {
    with_file(LITTLE, |mapping| {
        mapping.suspended(&["--mapped-files", "refer"])?;
        let file = &mapping.file;
        let open = || {
            OpenOptions::new()
                .write(true)
                .open(file)
                .map_err(failed(file))
        };
        let set = |at: u64, bytes: &[u8]| {
            let written = open()?.write_all_at(bytes, at);
            written.map_err(failed(file))
        };
        let whole = fs::read(file).map_err(failed(file))?;
        set(LITTLE / 2, b"X")?;
        mapping.is_refused("other contents")?;
        set(LITTLE / 2, &whole[whole.len() / 2..][..1])?;
        open()?.set_len(LITTLE - 1).map_err(failed(file))?;
        mapping.is_refused(&format!("{} bytes here instead of {LITTLE}", LITTLE - 1))?;
        fs::remove_file(file).map_err(failed(file))?;
        mapping.is_refused("missing")?;
        // A copy has another inode and another time.
        fs::write(file, &whole).map_err(failed(file))?;
        let before = SystemTime::now() - Duration::from_secs(100_000);
        open()?.set_modified(before).map_err(failed(file))?;
        mapping.restarts(false)
    });
}

#[test]
fn what_is_kept_needs_no_file() {
    with_file(LITTLE, |mapping| {
        mapping.suspended(&["--mapped-files", "keep"])?;
        let image = mapping.inspected()?;
        let (files, referred) = (&image["mapped_files"], &image["sizes"]["referred_bytes"]);
        ensure!(*files == serde_json::json!([]) && *referred == 0, "{files}");
        fs::remove_file(&mapping.file).map_err(failed(&mapping.file))?;
        mapping.restarts(true)
    });
}

/// By default, a suspended job relies on installed files but not on temporary ones, which may be gone.
#[test]
fn temporary_files_are_kept_and_installed_ones_are_not() {
    with_file(LITTLE, |mapping| {
        let temporary = mapping.trial.directory.file("temporary");
        fs::create_dir(&temporary).map_err(failed(&temporary))?;
        let built = mapping.trial.executable().with_file_name("libcounter.so");
        let library = temporary.join("libcounter.so");
        fs::copy(built, &library).map_err(failed(&library))?;
        let inside = Mapping {
            trial: mapping.trial,
            file: temporary.join("data"),
        };
        data(&inside.file, LITTLE)?;
        let mut command = job::mpirun(2);
        command.arg(place::stillpoint()?).args(["run", "--dir"]);
        command
            .arg(mapping.trial.epochs_at())
            .arg("--")
            .arg(mapping.trial.executable());
        command
            .arg(&inside.file)
            .arg(&library)
            .env("TMPDIR", &temporary);
        let mut job = mapping.trial.launch(command)?;
        mapping.trial.ready(&mut job)?;
        mapping.trial.suspended(job)?;
        let image = inside.inspected()?;
        let files = image["mapped_files"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let paths: Vec<&str> = files
            .iter()
            .filter_map(|file| file["path"].as_str())
            .collect();
        let has = |name: &str| paths.iter().any(|path| path.contains(name));
        ensure!(has("/libc.so.6") && has("/libm.so.6"), "{paths:?}");
        ensure!(!has("temporary") && !has("libstillpoint_"), "{paths:?}");
        fs::remove_dir_all(&temporary).map_err(failed(&temporary))?;
        inside.restarts(true)
    });
}

/// A file that has changed since the start may change again.
#[test]
fn a_file_that_has_changed_since_the_job_began_is_kept() {
    with_file(LITTLE, |mapping| {
        let path = mapping.file.canonicalize().map_err(failed(&mapping.file))?;
        let temporary = ["/tmp", "/var/tmp", "/dev/shm"];
        let is_temporary = temporary.iter().any(|place| path.starts_with(place));
        let job = mapping.started(&[], None)?;
        command::checkpoint(mapping.trial.directory, &mapping.trial.epochs_at())?
            .expect(exit::DONE)?;
        let left = mapping.left_to(&path)?;
        ensure!(
            left.is_none() == is_temporary,
            "{left:?} bytes are left to it"
        );
        // The bytes of the file are the same.
        let touched = OpenOptions::new().write(true).open(&path);
        let touched = touched.and_then(|file| file.set_modified(SystemTime::now()));
        touched.map_err(failed(&path))?;
        mapping.trial.suspended(job)?;
        let left = mapping.left_to(&path)?;
        ensure!(left.is_none(), "{left:?} bytes are left to it");
        mapping.restarts(true)
    });
}
