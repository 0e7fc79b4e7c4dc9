//! Other MPIs than the machine's own, and jobs that change theirs at a restart. `ci/mpis DIR` gets them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::job::{self, Job};
use crate::place::{self, Directory};
use crate::program::{Kind, Program};
use crate::trial::Trial;
use crate::turn::Turn;
use crate::{Failed, ensure};

/// The machine's own.
pub const OWN: &str = "own";

/// One MPI with its launcher.
#[derive(Clone, Debug)]
pub struct Mpi {
    pub name: String,
    /// Where `bin` and `lib` are; `None`: the machine's own, which `PATH` has.
    directory: Option<PathBuf>,
}

impl Mpi {
    /// The machine's own Open MPI.
    pub fn own() -> Mpi {
        Mpi {
            name: OWN.to_owned(),
            directory: None,
        }
    }

    /// One of those in a directory of `ci/mpis`, or the machine's own.
    pub fn named(directory: &Path, name: &str) -> Result<Mpi, Failed> {
        if name == OWN {
            return Ok(Mpi::own());
        }
        // Jobs are started in directories of their own.
        let directory = std::path::absolute(directory).map_err(|error| error.to_string())?;
        let it = Mpi {
            name: name.to_owned(),
            directory: Some(directory.join(name)),
        };
        let launcher = directory.join(name).join("bin/mpiexec");
        ensure!(
            launcher.exists(),
            "{} is missing: run `ci/mpis {} {name}` first",
            launcher.display(),
            directory.display()
        );
        Ok(it)
    }

    /// Its launcher, with so many ranks.
    pub fn launcher(&self, ranks: u32) -> Command {
        let Some(directory) = &self.directory else {
            return job::mpirun(ranks);
        };
        let mut command = Command::new(directory.join("bin/mpiexec"));
        command.args(["-n", &ranks.to_string()]);
        // As `job::mpirun` says it, for every launcher.
        command
            .env("OMP_NUM_THREADS", "1")
            .env("STILLPOINT_SUSPENDED_STATUS", "0")
            .env_remove("STILLPOINT_DIR");
        for (name, value) in self.settings(directory) {
            command.env(name, value);
        }
        command
    }

    /// What it needs to run where it was unpacked, on a machine with fewer cores than ranks.
    fn settings(&self, directory: &Path) -> Vec<(&'static str, String)> {
        let here = directory.display().to_string();
        match self.name.as_str() {
            // Debian's launcher has a library of its own beside it.
            "mpich-debian" => vec![("LD_LIBRARY_PATH", format!("{here}/lib"))],
            "impi" => vec![
                ("I_MPI_ROOT", here.clone()),
                ("I_MPI_FABRICS", "shm".to_owned()),
                ("I_MPI_PIN", "0".to_owned()),
                ("FI_PROVIDER_PATH", format!("{here}/lib/libfabric/prov")),
            ],
            "openmpi" => vec![
                ("OPAL_PREFIX", here),
                ("PRTE_ALLOW_RUN_AS_ROOT", "1".to_owned()),
                ("PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1".to_owned()),
                ("OMPI_ALLOW_RUN_AS_ROOT", "1".to_owned()),
                ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1".to_owned()),
                (
                    "PRTE_MCA_rmaps_default_mapping_policy",
                    ":oversubscribe".to_owned(),
                ),
            ],
            _ => vec![],
        }
    }
}

/// A trial whose launches are by these MPIs, one after the other.
pub struct Across<'a> {
    pub trial: Trial<'a>,
}

impl Across<'_> {
    /// Starts the program under `stillpoint run`.
    pub fn started(&self, on: &Mpi) -> Result<Job, Failed> {
        let mut command = on.launcher(self.trial.ranks);
        command.arg(place::stillpoint()?).args(["run", "--dir"]);
        command.arg(self.trial.epochs_at()).arg("--");
        command.arg(self.trial.executable());
        command.args(&self.trial.arguments);
        self.trial.launch(command)
    }

    /// Starts it again from its newest epoch.
    pub fn restarted(&self, on: &Mpi) -> Result<Job, Failed> {
        let mut command = on.launcher(self.trial.ranks);
        command.arg(place::stillpoint()?).arg("restart");
        command.arg(self.trial.epochs_at());
        self.trial.launch(command)
    }
}

/// A program is started on the first of these MPIs, suspended, carried on on the next, and so on, and comes to its right end on the last.
pub fn changes(program: &Program, ranks: u32, on: &[&Mpi]) -> Result<(), Failed> {
    let Some((first, others)) = on.split_first() else {
        return Err("no MPI to start on".to_owned());
    };
    let names: Vec<&str> = on.iter().map(|mpi| mpi.name.as_str()).collect();
    let _turn = Turn::take()?;
    let directory = Directory::new(&format!("{}-{ranks}-{}", program.name, names.join("-")))?;
    directory.run(|directory| {
        let across = Across {
            trial: Trial::new(program, ranks, directory)?,
        };
        let trial = &across.trial;
        let mut job = across.started(first)?;
        trial.ready(&mut job)?;
        for (at, next) in others.iter().enumerate() {
            trial.suspended(job)?;
            job = across.restarted(next)?;
            if at + 1 < others.len() {
                trial.runs_again(&mut job)?;
            }
            // What never holds still does something of its own on each of them.
            if program.kind == Kind::Moving {
                trial.runs_again(&mut job)?;
                thread::sleep(Duration::from_millis(100));
            }
        }
        trial.go()?;
        trial.ends_well(job).map(drop)
    })
}
