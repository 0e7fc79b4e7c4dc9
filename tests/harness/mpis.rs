//! Other MPIs than the machine's own, and jobs that change theirs at a restart. `ci/mpis DIR` downloads them.

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
/// The MPI whose programs are built for the standard's ABI.
pub const STANDARD: &str = "mpich";

/// One MPI with its launcher.
#[derive(Clone, Debug)]
pub struct Mpi {
    pub name: String,
    /// The directory with its `bin` and `lib`, or `None` for the machine's own MPI, which is in `PATH`.
    directory: Option<PathBuf>,
}

impl Mpi {
    /// Returns the machine's own Open MPI.
    pub fn own() -> Mpi {
        Mpi {
            name: OWN.to_owned(),
            directory: None,
        }
    }

    /// Returns one of the MPIs in a directory of `ci/mpis`, or the machine's own.
    pub fn named(directory: &Path, name: &str) -> Result<Mpi, Failed> {
        if name == OWN {
            return Ok(Mpi::own());
        }
        // Jobs start in directories of their own, so the path must be absolute.
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

    /// Tells whether programs in this language can be built for it.
    pub fn has(&self, language: &str) -> bool {
        match self.name.as_str() {
            OWN | "mpich-debian" => true,
            // It has no headers at all.
            "impi" => false,
            _ => language == "c",
        }
    }

    /// Tells whether it is the machine's own.
    pub fn is_own(&self) -> bool {
        self.directory.is_none()
    }

    /// Returns the compiler to use instead of the machine's own MPI's `wrapper`. Unpacked MPIs have wrappers with other paths, so the underlying compiler
    /// gets the options that the wrapper would add.
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
            // The compiler takes the address `MPI_STATUSES_IGNORE` for an array's.
            command.arg("-Wno-stringop-overflow");
        }
        command
    }

    /// Returns the options to link a program in a language without a wrapper. Its libraries are found where it was unpacked.
    pub fn linked(&self, language: &str) -> Vec<String> {
        let Some(directory) = &self.directory else {
            return vec![];
        };
        let libraries = directory.join("lib").display().to_string();
        // All libraries are the program's own, for two reasons. The linker does not search the program's path for libraries of its libraries. Some compilers
        // have the linker drop libraries that a program itself does not use (a Fortran program of MPICH's own library).
        let mut words = vec![
            format!("-L{libraries}"),
            format!("-Wl,-rpath,{libraries}"),
            "-Wl,--no-as-needed".to_owned(),
        ];
        // Those from wheels support only C.
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

    /// Returns its launcher, with so many ranks.
    pub fn launcher(&self, ranks: u32) -> Command {
        let Some(directory) = &self.directory else {
            return job::mpirun(ranks);
        };
        let mut command = Command::new(directory.join("bin/mpiexec"));
        command.args(["-n", &ranks.to_string()]);
        // The same settings as in `job::mpirun`, for every launcher.
        command
            .env("OMP_NUM_THREADS", "1")
            .env("STILLPOINT_SUSPENDED_STATUS", "0")
            .env_remove("STILLPOINT_DIR");
        for (name, value) in self.settings(directory) {
            command.env(name, value);
        }
        command
    }

    /// Returns the settings to run where it was unpacked, on a machine with fewer cores than ranks.
    fn settings(&self, directory: &Path) -> Vec<(&'static str, String)> {
        let here = directory.display().to_string();
        match self.name.as_str() {
            // Debian's launcher has a library of its own beside it. The devices of other tests' hosts come and go, and UCX fails if one that it has found goes.
            "mpich-debian" => vec![
                ("LD_LIBRARY_PATH", format!("{here}/lib")),
                ("UCX_NET_DEVICES", "lo".to_owned()),
            ],
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

/// A trial whose launches use these MPIs, one after the other.
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

/// Starts a program on the first of these MPIs, suspends it, continues it on the next, and so on. It must end right on the last.
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
            // A moving program does some work of its own on each MPI.
            if program.kind == Kind::Moving {
                trial.runs_again(&mut job)?;
                thread::sleep(Duration::from_millis(100));
            }
        }
        trial.go()?;
        trial.ends_well(job).map(drop)
    })
}
