//! The reasons why a program could not be started: one line each, and the exit status that shells use in such a case.

use std::io;
use std::path::PathBuf;

use stillpoint_ids::Rank;
use stillpoint_protocol::launch_start::Missing;
use stillpoint_refusals::{Code, Coded, Refusal};

use crate::loader::map::MapError;

#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("no program given; usage: stillpoint run [OPTIONS] -- APP [ARGS...]")]
    Usage,
    #[error("{0}: no such program; check the name, or give its path")]
    NotFound(String),
    #[error("{0}: not in any directory of PATH; check the name, or give the program's path")]
    NotInPath(String),
    #[error("{0}: is a directory; give the path of a program in it")]
    Directory(String),
    #[error("{0}: permission to execute it is missing; try `chmod +x`")]
    Permission(String),
    #[error("{path}: {source}")]
    Unreadable { path: String, source: io::Error },
    #[error(
        "{script}: its first line names {interpreter}, but that file is missing; correct that line"
    )]
    Interpreter { script: String, interpreter: String },
    #[error("{0}: its first line is not a usable `#!` line; correct that line")]
    BadFirstLine(String),
    #[error(
        "{0}: too many scripts name each other as interpreters (five); name the last program directly"
    )]
    TooDeep(String),
    #[error("{path}: {source}")]
    Program { path: String, source: MapError },
    #[error("{path}: cannot load its interpreter {interpreter}: {source}")]
    Linker {
        path: String,
        interpreter: String,
        source: MapError,
    },
    #[error("{0}: an argument holds a NUL byte")]
    Argument(String),
    #[error(
        "{path}: the upper half's library is missing; build the workspace, or set STILLPOINT_UPPER to its path",
        path = .0.display()
    )]
    Library(PathBuf),
    #[error(
        "{path}: the upper half's library belongs to another build: its contract is {found}, but this program's is \
         {expected:08x}; install both from the same build",
        path = path.display()
    )]
    OtherBuild {
        path: PathBuf,
        found: String,
        expected: u32,
    },
    #[error("cannot set up the process: {what}: {source}")]
    SetUp {
        what: &'static str,
        source: io::Error,
    },
    #[error("{0}; use --mpi-library to name the file of an MPI library with the standard's ABI")]
    Mpi(String),
    #[error("cannot restart rank {rank}: {}", reason.details())]
    Restore { rank: Rank, reason: Refusal },
    #[error("rank {rank}: {missing}")]
    NoJob { rank: Rank, missing: Missing },
    #[error("rank {rank}: {what}")]
    Differs { rank: Rank, what: String },
    #[error("{0}")]
    Space(String),
    #[error(transparent)]
    Agent(#[from] crate::agent::AgentError),
    #[error(transparent)]
    Contract(#[from] stillpoint_protocol::launch::LaunchError),
}

impl Coded for LaunchError {
    fn code(&self) -> Code {
        match self {
            LaunchError::NotFound(_)
            | LaunchError::NotInPath(_)
            | LaunchError::Interpreter { .. }
            | LaunchError::Usage
            | LaunchError::Argument(_)
            | LaunchError::Directory(_)
            | LaunchError::Permission(_)
            | LaunchError::Unreadable { .. }
            | LaunchError::BadFirstLine(_)
            | LaunchError::TooDeep(_) => Code::NoProgram,
            LaunchError::Program { source, .. } | LaunchError::Linker { source, .. } => {
                source.code()
            }
            LaunchError::Library(_) | LaunchError::OtherBuild { .. } => Code::Incomplete,
            LaunchError::SetUp { .. } => Code::NotSetUp,
            LaunchError::Mpi(_) => Code::MpiMissing,
            LaunchError::Restore { reason, .. } => reason.code(),
            LaunchError::NoJob { missing, .. } => missing.code(),
            LaunchError::Differs { .. } => Code::RanksDiffer,
            LaunchError::Space(_) => Code::LittleSpace,
            LaunchError::Agent(error) => error.code(),
            LaunchError::Contract(_) => Code::NoJob,
        }
    }
}

impl LaunchError {
    /// 127: not found; 126: found, but cannot be run; 2: usage; 1: anything else.
    pub fn exit_status(&self) -> i32 {
        match self {
            LaunchError::NotFound(_)
            | LaunchError::NotInPath(_)
            | LaunchError::Interpreter { .. } => 127,
            LaunchError::Directory(_)
            | LaunchError::Permission(_)
            | LaunchError::Unreadable { .. }
            | LaunchError::BadFirstLine(_)
            | LaunchError::TooDeep(_)
            | LaunchError::Program { .. }
            | LaunchError::Linker { .. }
            | LaunchError::Space(_) => 126,
            LaunchError::Usage | LaunchError::Argument(_) => 2,
            // The same status as the command's.
            LaunchError::NoJob {
                missing: Missing::Directory { source, .. },
                ..
            } if source.kind() == io::ErrorKind::PermissionDenied => 4,
            LaunchError::Restore { .. }
            | LaunchError::Mpi(_)
            | LaunchError::Library(_)
            | LaunchError::OtherBuild { .. }
            | LaunchError::SetUp { .. }
            | LaunchError::NoJob { .. }
            | LaunchError::Differs { .. }
            | LaunchError::Agent(_)
            | LaunchError::Contract(_) => 1,
        }
    }

    /// Adds a description of the step that failed.
    pub fn set_up(what: &'static str) -> impl FnOnce(io::Error) -> LaunchError {
        move |source| LaunchError::SetUp { what, source }
    }
}
