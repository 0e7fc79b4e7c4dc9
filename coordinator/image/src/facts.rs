//! The facts by which a restart is allowed or refused: the rank's identity, and the machine and software that it ran on.

use serde::{Deserialize, Serialize};
use stillpoint_ids::{Epoch, Rank};

/// The oldest kernel that Stillpoint runs on. Since 5.11, seccomp answers for calls that are never trapped without running the filter.
pub const OLDEST_KERNEL: (u32, u32) = (5, 11);

/// The identity of an image: its rank, job and epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The job's id, the same in every image and manifest of the job.
    pub job: String,
    pub epoch: Epoch,
    pub rank: Rank,
    /// The number of ranks in the job.
    pub size: u32,
    /// The application and its arguments.
    pub command: Vec<String>,
}

/// The machine and the software that the process ran on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// `uname -r`, for people: a restart does not depend on it.
    pub kernel: String,
    /// `uname -m`.
    pub architecture: String,
    pub hostname: String,
    pub page_bytes: u64,
    /// `stillpoint_wrappers::contract::VERSION` of the upper half in the image.
    pub gate_version: u32,
    /// A number for the code at fixed addresses that stacks in the image may lead to (the lower half's springboard).
    #[serde(default)]
    pub springboard: u32,
    /// The MPI ABI that the application was compiled against: `openmpi`.
    pub mpi_abi: String,
    /// The MPI library's own description of itself, for people.
    pub mpi_library: String,
    /// The level that `MPI_Init_thread` was asked for (standard-ABI value); -1 if MPI was not initialised.
    pub mpi_thread_level: i32,
    pub cpu: crate::features::Cpu,
    /// The version of Stillpoint that wrote the image.
    pub stillpoint: String,
}
