//! Other MPIs than the machine's own, and jobs that change theirs at a restart. `ci/mpis DIR` gets them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::job::{self, Job};
use crate::place::{self, Directory};
use crate::program::{Kind, Program};
use crate::trial::Trial;
use crate::{Failed, ensure};

/// The machine's own.
pub const OWN: &str = "own";
/// The one whose programs are built for the standard's ABI.
pub const STANDARD: &str = "mpich";

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

    /// Whether programs in this language can be built for it.
    pub fn has(&self, language: &str) -> bool {
        match self.name.as_str() {
            OWN | "mpich-debian" => true,
            // No headers of other languages, and none at all.
            "impi" => false,
            _ => language == "c",
        }
    }

    /// Whether it is the machine's own.
    pub fn is_own(&self) -> bool {
        self.directory.is_none()
    }

    /// What compiles for it in place of the machine's own MPI's `wrapper`. Unpacked ones have wrappers of other places: the compilers behind these are told
    /// what they would say.
    pub fn compiler(&self, wrapper: &str) -> Command {
        let Some(directory) = &self.directory else {
            return Command::new(wrapper);
        };
        let mut command = Command::new(match wrapper {
            "mpicxx" => "c++",
            "mpifort" => "gfortran",
            _ => "cc",
        });
        command.arg(format!("-I{}", directory.join("include").display()));
        if self.name == STANDARD {
            command.arg("-DMPI_ABI");
        }
        if wrapper == "mpicc" {
            // `MPI_STATUSES_IGNORE` is an address that the compiler takes for an array's.
            command.arg("-Wno-stringop-overflow");
        }
        command
    }

    /// What a program in a language is linked with, where no wrapper says it. Its libraries are found where it was unpacked.
    pub fn linked(&self, language: &str) -> Vec<String> {
        let Some(directory) = &self.directory else {
            return vec![];
        };
        let libraries = directory.join("lib").display().to_string();
        // All of them are the program's own: what its libraries need is not looked for where it itself was told to look, and some compilers have the linker leave out
        // what a program itself asks nothing of (a Fortran program of MPICH's own library).
        let mut words = vec![
            format!("-L{libraries}"),
            format!("-Wl,-rpath,{libraries}"),
            "-Wl,--no-as-needed".to_owned(),
        ];
        // Those of wheels have C alone.
        let of_language: &[&str] = match (self.name.as_str(), language) {
            ("mpich-debian", "cpp") => &["-lmpichcxx", "-lmpich"],
            ("mpich-debian", "f90") => &["-lmpichfort", "-lmpich"],
            ("mpich-debian", _) => &["-lmpich"],
            (STANDARD, _) => &["-lmpi_abi"],
            _ => &["-lmpi"],
        };
        words.extend(of_language.iter().map(|&word| word.to_owned()));
        words
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
    /// Starts the program natively.
    pub fn native(&self, on: &Mpi) -> Result<Job, Failed> {
        let mut command = on.launcher(self.trial.ranks);
        command.arg(self.trial.executable());
        command.args(&self.trial.arguments);
        self.trial.launch(command)
    }

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
    let directory = Directory::new(&format!(
        "{}-{ranks}-{}-{}",
        program.name,
        program.mpi().name,
        names.join("-")
    ))?;
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
