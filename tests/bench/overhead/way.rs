//! The ways in which a job is run.

use std::path::Path;
use std::process::Command;
use std::thread;

use clap::ValueEnum;
use stillpoint_tests::mpis::Mpi;
use stillpoint_tests::{Failed, place};

/// Ranks of every job.
pub const RANKS: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum)]
pub enum Way {
    /// Without Stillpoint
    Native,
    /// Without Stillpoint, by another job: the method's result for two equal jobs
    Again,
    /// With the collective clock
    Clock,
    /// With a barrier before every collective operation
    Barrier,
    /// Under another checkpointer
    #[value(skip)]
    Other,
}

impl Way {
    pub fn name(self) -> &'static str {
        match self {
            Way::Native => "native",
            Way::Again => "again",
            Way::Clock => "clock",
            Way::Barrier => "barrier",
            Way::Other => "other",
        }
    }

    /// Returns the command with an MPI's launcher and ranks in this way, up to the program or to another checkpointer's command. Epochs would go into
    /// `directory`.
    pub fn command(self, mpi: &Mpi, directory: &Path) -> Result<Command, Failed> {
        let mut command = match mpi.is_own() {
            true => mpirun(),
            false => launcher(mpi),
        };
        if matches!(self, Way::Clock | Way::Barrier) {
            command
                .arg(place::stillpoint()?)
                .args(["run", "--safe-state", self.name(), "--dir"])
                .arg(directory.join(format!("{}.d", self.name())))
                .arg("--");
        }
        Ok(command)
    }
}

/// Returns another MPI's launcher, which binds no rank to a core by default.
fn launcher(mpi: &Mpi) -> Command {
    let mut command = mpi.launcher(RANKS as u32);
    command.env("OPENBLAS_NUM_THREADS", "1");
    command
}

/// Returns `mpirun`, with a core for each rank if there are as many; the ranks of measures choose their cores
/// themselves.
fn mpirun() -> Command {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let (binding, yields) = match cores >= RANKS {
        true => ("core", "0"),
        false => ("none", "1"),
    };
    let mut command = Command::new("mpirun");
    command
        .args(["-n", &RANKS.to_string(), "--bind-to", binding])
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("OMPI_MCA_mpi_yield_when_idle", yields)
        .env("OMP_NUM_THREADS", "1")
        .env("OPENBLAS_NUM_THREADS", "1")
        .env_remove("STILLPOINT_DIR");
    command
}
