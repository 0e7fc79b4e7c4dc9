//! Users of this test alone, and their jobs.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use nix::unistd::geteuid;
use stillpoint_tests::command::{self, Answer};
use stillpoint_tests::job::{self, Job};
use stillpoint_tests::place::{self, Directory};
use stillpoint_tests::program::{Kind, Program};
use stillpoint_tests::{Failed, ensure};

/// The longest time for a launch on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// A group without members.
pub const NOBODY: u32 = 65534;
/// The group of their processes. No table lists them as its members.
pub const GROUP: u32 = 61_234;

pub fn text(error: impl ToString) -> Failed {
    error.to_string()
}

/// The directory of programs that every user may start, and of the users' own directories.
pub struct House {
    pub root: PathBuf,
    pub users: Vec<u32>,
    pub program: PathBuf,
}

impl House {
    /// Makes users of this test alone, by number. A suite without root rights has one user, itself, with a registry of
    /// its own.
    pub fn new(name: &str) -> Result<House, Failed> {
        let root = std::env::temp_dir();
        let root = root.join(format!("stillpoint-house-{name}-{}", std::process::id()));
        fs::create_dir_all(&root).map_err(text)?;
        fs::set_permissions(&root, Permissions::from_mode(0o755)).map_err(text)?;
        let mine = geteuid().as_raw();
        // Tests run in parallel, so each has users of its own.
        static HOUSES: AtomicU32 = AtomicU32::new(0);
        let house = HOUSES.fetch_add(1, Ordering::Relaxed);
        let first = 100_000 + std::process::id() % 60_000 * 30 + house * 3;
        let users = match mine {
            0 => (first..first + 3).collect(),
            _ => vec![mine; 3],
        };
        let program = Program::named(Kind::Still, "self_messages")?.build()?;
        let house = House {
            program: root.join("program"),
            root,
            users,
        };
        let binaries = [
            "stillpoint",
            "stillpoint-lower-openmpi",
            "libstillpoint_upper_openmpi.so",
            "libstillpoint_preload.so",
        ];
        let copies = binaries.map(|name| (place::binaries().join(name), house.root.join(name)));
        let copies = copies.into_iter().chain([(program, house.program.clone())]);
        for (from, to) in copies {
            // Another process copies: a file that this one has open for writing cannot be executed.
            let copied = Command::new("cp").arg(&from).arg(&to).status();
            ensure!(copied.map_err(text)?.success(), "no {}", from.display());
            fs::set_permissions(&to, Permissions::from_mode(0o755)).map_err(text)?;
        }
        Ok(house)
    }

    pub fn is_root(&self) -> bool {
        geteuid().is_root()
    }

    pub fn stillpoint(&self, directory: &Directory, words: &[&str]) -> Result<Answer, Failed> {
        let mut command = Command::new(self.root.join("stillpoint"));
        command.args(words);
        if self.is_root() {
            let users: Vec<String> = self.users.iter().map(ToString::to_string).collect();
            // Other tests have jobs here.
            command.args(["--user", &users.join(",")]);
        }
        self.at_home(&mut command);
        command::run(command, directory, PATIENCE)
    }

    /// Gives the suite's own user a separate registry, without other tests' jobs.
    pub fn at_home(&self, command: &mut Command) {
        command.env_remove("STILLPOINT_RUNTIME_DIR");
        if !self.is_root() {
            command.env("STILLPOINT_RUNTIME_DIR", self.root.join("registry"));
        }
    }

    /// Returns the directory of a user's job entries.
    pub fn registry(&self, user: u32) -> Result<PathBuf, Failed> {
        let places = [
            self.root.join("registry"),
            PathBuf::from(format!("/run/stillpoint/{user}")),
            PathBuf::from(format!("/tmp/stillpoint-{user}")),
        ];
        let there = places.into_iter().find(|place| place.is_dir());
        there.ok_or_else(|| format!("user {user} has no registry"))
    }
}

impl Drop for House {
    fn drop(&mut self) {
        // The system cleans this place for temporary files.
        let _ = fs::remove_dir_all(&self.root);
        if self.is_root() {
            for user in &self.users {
                let _ = fs::remove_dir_all(format!("/run/stillpoint/{user}"));
                let _ = fs::remove_dir_all(format!("/tmp/stillpoint-{user}"));
            }
        }
    }
}

/// A job of one rank, in a directory of its user's.
pub struct Work<'a> {
    pub house: &'a House,
    pub user: u32,
    /// The group of its processes.
    pub group: u32,
    pub name: String,
    pub directory: PathBuf,
}

impl<'a> Work<'a> {
    pub fn new(house: &'a House, user: u32, number: usize) -> Result<Work<'a>, Failed> {
        Work::of_group(house, user, GROUP, number)
    }

    pub fn of_group(
        house: &'a House,
        user: u32,
        group: u32,
        number: usize,
    ) -> Result<Work<'a>, Failed> {
        let name = format!("job-{number}");
        let directory = house.root.join(&name);
        fs::create_dir(&directory).map_err(text)?;
        fs::set_permissions(&directory, Permissions::from_mode(0o700)).map_err(text)?;
        if house.is_root() {
            chown(&directory, Some(user), Some(group)).map_err(text)?;
        }
        Ok(Work {
            house,
            user,
            group,
            name,
            directory,
        })
    }

    pub fn epochs(&self) -> PathBuf {
        self.directory.join("epochs.d")
    }

    pub fn start(&self, directory: &Directory, words: &[&str]) -> Result<Job, Failed> {
        Job::start(self.command(words), directory)
    }

    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = job::mpirun(1);
        command.arg(self.house.root.join("stillpoint"));
        command.args(words);
        self.house.at_home(&mut command);
        command
            .current_dir(&self.directory)
            .env("HOME", &self.directory)
            .env("TMPDIR", &self.directory)
            .env("TRIAL_DIR", &self.directory);
        if self.house.is_root() {
            command.uid(self.user).gid(self.group);
        }
        command
    }

    pub fn run(&self, directory: &Directory) -> Result<Job, Failed> {
        let (epochs, program) = (self.epochs(), self.house.program.clone());
        let words = ["run", "--name", &self.name, "--dir", shown(&epochs)];
        let words = words.into_iter().chain(["--", shown(&program)]);
        self.start(directory, &words.collect::<Vec<_>>())
    }

    pub fn ready(&self, job: &mut Job) -> Result<(), Failed> {
        let ready = self.directory.join("ready.0");
        job.until("ready", PATIENCE, |_| ready.exists())
    }
}

pub fn shown(path: &Path) -> &str {
    path.to_str().unwrap_or_default()
}
