//! The errors of making, reading and removing epochs.

use std::io;
use std::path::{Path, PathBuf};

use stillpoint_ids::{Epoch, Rank};
use stillpoint_image::ImageError;
use stillpoint_refusals::{Code, Coded};

/// The reason why an epoch cannot be made, read or removed.
#[derive(Debug, thiserror::Error)]
pub enum EpochError {
    #[error("{}: cannot {action}: {source}{}", path.display(), advice(source))]
    Io {
        path: PathBuf,
        action: &'static str,
        source: io::Error,
    },
    #[error("{}: the image has {found} bytes, but rank {rank} wrote {expected}", path.display())]
    WrongLength {
        path: PathBuf,
        rank: Rank,
        found: u64,
        expected: u64,
    },
    #[error(
        "the ranks run different builds of Stillpoint: the contract of rank {rank} is {found:08x}, that of rank 0 is \
         {expected:08x}: start every rank with the same build"
    )]
    Contract {
        rank: Rank,
        found: u32,
        expected: u32,
    },
    #[error(
        "{}: epoch {epoch} needs epoch {needed}, and it is missing: leave the epochs in their directory while the job runs",
        path.display()
    )]
    Base {
        path: PathBuf,
        epoch: Epoch,
        needed: Epoch,
    },
    #[error("{}: {by}", path.display())]
    Taken { path: PathBuf, by: String },
    #[error(transparent)]
    Image(#[from] ImageError),
}

impl Coded for EpochError {
    fn code(&self) -> Code {
        match self {
            EpochError::Io { source, .. } => Code::of(source, Code::NotWritten),
            EpochError::WrongLength { .. } | EpochError::Base { .. } => Code::NotWritten,
            EpochError::Contract { .. } => Code::RanksDiffer,
            EpochError::Taken { .. } => Code::DirectoryTaken,
            EpochError::Image(error) => error.code(),
        }
    }
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            ": free some space or choose another --dir"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            ": choose a directory that this user may write to (--dir)"
        }
        _ => "",
    }
}

pub(super) fn io_error(
    path: &Path,
    action: &'static str,
) -> impl FnOnce(io::Error) -> EpochError + use<> {
    let path = path.to_owned();
    move |source| EpochError::Io {
        path,
        action,
        source,
    }
}
