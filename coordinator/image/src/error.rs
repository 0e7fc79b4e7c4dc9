//! Errors of images and manifests, in words for people.

use std::io;
use std::path::{Path, PathBuf};

use stillpoint_ids::{Epoch, Rank};
use stillpoint_refusals::{Code, Coded};

/// The reason why an image or a manifest could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    #[error("{}: cannot {action}: {source}{}", path.display(), advice(source))]
    Io {
        path: PathBuf,
        action: &'static str,
        source: io::Error,
    },

    #[error("{}: not a {what} (offset 0, magic): check that the path names a Stillpoint {what}", path.display())]
    NotOurs { path: PathBuf, what: &'static str },

    #[error(
        "{}: offset 8, version: the file has format version {found}, but this build reads {}: use the Stillpoint \
         release that wrote it", path.display(), versions(*oldest, *expected)
    )]
    Version {
        path: PathBuf,
        found: u32,
        /// The oldest version that this build reads.
        oldest: u32,
        /// The newest version that this build reads.
        expected: u32,
    },

    #[error(
        "{}: offset 12, byte order: a machine with the other byte order wrote it: restart on the same kind of machine", path.display()
    )]
    ByteOrder { path: PathBuf },

    #[error(
        "{}: truncated: the file has {found} bytes, but needs at least {needed} ({field}): use another epoch or copy \
         the file again", path.display()
    )]
    Truncated {
        path: PathBuf,
        found: u64,
        needed: u64,
        field: &'static str,
    },

    #[error(
        "{}: offset {offset}, {field}: checksum {found:016x} instead of {expected:016x}, the bytes have \
         changed: use another epoch or copy the file again", path.display()
    )]
    Checksum {
        path: PathBuf,
        offset: u64,
        field: String,
        found: u64,
        expected: u64,
    },

    #[error("{}: offset {offset}, {field}: {problem}: use another epoch or copy the file again", path.display())]
    Malformed {
        path: PathBuf,
        offset: u64,
        field: String,
        problem: String,
    },

    #[error(
        "{}: the digest is {found:032x}, but the manifest says {expected:032x}: the image belongs to another epoch or \
         was replaced; use another epoch", path.display()
    )]
    Digest {
        path: PathBuf,
        found: u128,
        expected: u128,
    },

    #[error(
        "{}: it needs epoch {epoch}: {}: {problem}: put that epoch's directory back beside this one, or use another epoch",
        path.display(), file.display()
    )]
    Origin {
        /// The image that needs another one.
        path: PathBuf,
        epoch: Epoch,
        /// The one that is needed.
        file: PathBuf,
        problem: String,
        source: Option<io::Error>,
    },

    #[error(
        "{}: it needs the image of rank {rank}: {}: {problem}: put that file back beside this one, or use another epoch",
        path.display(), file.display()
    )]
    Sibling {
        /// The image that needs another one.
        path: PathBuf,
        rank: Rank,
        /// The one that is needed.
        file: PathBuf,
        problem: String,
        source: Option<io::Error>,
    },

    #[error("{}: {problem}: this is an error in Stillpoint, please report it", path.display())]
    Unwritable { path: PathBuf, problem: String },
}

fn versions(oldest: u32, newest: u32) -> String {
    match oldest == newest {
        true => format!("version {newest}"),
        false => format!("versions {oldest} to {newest}"),
    }
}

/// Returns advice on an operating system's error.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            ": free some space or choose another --dir"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            ": choose a directory that this user may use"
        }
        io::ErrorKind::NotFound => ": check the path, or choose another epoch",
        _ => "",
    }
}

impl Coded for ImageError {
    fn code(&self) -> Code {
        match self {
            ImageError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Code::BrokenImage
            }
            ImageError::Io { source, .. } => Code::of(source, Code::NotWritten),
            ImageError::Version { .. } => Code::OtherBuild,
            ImageError::ByteOrder { .. } => Code::Processor,
            ImageError::Unwritable { .. } => Code::Internal,
            ImageError::NotOurs { .. }
            | ImageError::Truncated { .. }
            | ImageError::Checksum { .. }
            | ImageError::Malformed { .. }
            | ImageError::Digest { .. }
            | ImageError::Origin { .. }
            | ImageError::Sibling { .. } => Code::BrokenImage,
        }
    }
}

impl ImageError {
    /// The code of this error if it came from reading the image.
    pub fn code_of_reading(&self) -> Code {
        match self.code() {
            Code::NotWritten => Code::BrokenImage,
            code => code,
        }
    }

    /// Returns whether a file would have become longer than it may (`RLIMIT_FSIZE`, or the file system's own bound).
    pub fn is_too_long(&self) -> bool {
        matches!(self, ImageError::Io { source, .. } if source.kind() == io::ErrorKind::FileTooLarge)
    }

    /// Returns whether there is no such file or directory.
    pub fn is_missing(&self) -> bool {
        matches!(self, ImageError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// Returns the file that is at fault.
    pub fn file(&self) -> &Path {
        match self {
            ImageError::Io { path, .. }
            | ImageError::NotOurs { path, .. }
            | ImageError::Version { path, .. }
            | ImageError::ByteOrder { path }
            | ImageError::Truncated { path, .. }
            | ImageError::Checksum { path, .. }
            | ImageError::Malformed { path, .. }
            | ImageError::Digest { path, .. }
            | ImageError::Unwritable { path, .. } => path,
            ImageError::Origin { file, .. } | ImageError::Sibling { file, .. } => file,
        }
    }

    pub fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> ImageError {
        move |source| ImageError::Io {
            path: path.to_owned(),
            action,
            source,
        }
    }

    pub(crate) fn malformed(
        path: &Path,
        offset: u64,
        field: impl Into<String>,
        problem: impl Into<String>,
    ) -> ImageError {
        ImageError::Malformed {
            path: path.to_owned(),
            offset,
            field: field.into(),
            problem: problem.into(),
        }
    }
}
