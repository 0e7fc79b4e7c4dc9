//! The directory in which a job works, as a launch takes it.

use std::io;
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;
use stillpoint_directory::Directory;
use stillpoint_refusals::Code;

use super::Failure;

/// The absolute path of a directory, in the form for every rank and the coordinator.
pub fn absolute(directory: &Path) -> Result<PathBuf, Failure> {
    let absolute = std::path::absolute(directory).map_err(|error| {
        Failure::refuse(
            Code::UnsafeDirectory,
            Failure::FAILED,
            format!("{}: {error}", directory.display()),
        )
    })?;
    match absolute.to_str() {
        Some(_) => Ok(absolute),
        None => Err(Failure::refuse(
            Code::UnsafeDirectory,
            Failure::FAILED,
            format!(
                "{}: the name of a checkpoint directory must be UTF-8",
                directory.display()
            ),
        )),
    }
}

/// Makes the directory in which a job will work, or takes an existing one of ours. An obstacle is then reported before anything runs.
///
/// The directory above it has to be there: a name with a mistake in it must not make a tree elsewhere.
pub fn take(directory: &Path) -> Result<Directory, Failure> {
    if let Some(above) = directory.parent()
        && let Err(error) = above.metadata()
        && error.kind() == io::ErrorKind::NotFound
    {
        let text = format!(
            "{}: cannot make this directory: there is no {}: check the name, or make that one with mkdir -p",
            directory.display(),
            above.display()
        );
        return Err(Failure::refuse(
            Code::UnsafeDirectory,
            Failure::FAILED,
            text,
        ));
    }
    Directory::make(directory).map_err(|error| cannot_write(directory, &error))
}

pub fn cannot_write(directory: &Path, error: &io::Error) -> Failure {
    let shown = directory.display();
    let squashed = squashed(error, geteuid().is_root());
    let text = format!(
        "{shown}: cannot write checkpoints there: {error}{squashed}: choose another directory with --dir"
    );
    Failure::refuse_because(Code::UnsafeDirectory, error, text)
}

/// An explanation of an error that root does not get from a local file system.
fn squashed(error: &io::Error, is_root: bool) -> &'static str {
    // An error without a number is one of Stillpoint's own.
    let denied = error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_some();
    match denied && is_root {
        true => {
            " (a file server may treat root as another user, as NFS does with root_squash: run the job as the \
             directory's owner)"
        }
        false => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::errno::Errno;

    #[test]
    fn root_is_told_of_root_squash_where_a_file_server_denies_it_something() {
        let denied = io::Error::from(Errno::EACCES);
        assert!(squashed(&denied, true).contains("root_squash"));
        assert_eq!(squashed(&denied, false), "");
        let full = io::Error::from(Errno::ENOSPC);
        assert_eq!(squashed(&full, true), "");
    }
}
