//! The place where the running program was installed. Every part of Stillpoint asks this module only. A package may be upgraded while a job runs, and the
//! kernel then appends a mark to the name of the running file.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The mark that the kernel appends to the name of a file that was replaced or removed.
const REPLACED: &[u8] = b" (deleted)";

/// Returns the running program's file, by the name that it was started with. If it was replaced, this is the new file.
///
/// # Errors
/// There is no `/proc`.
pub fn this_program() -> io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    Ok(match path.exists() {
        true => path,
        false => without_mark(path.as_os_str()).into(),
    })
}

/// Removes the kernel's mark from a program's name.
pub fn without_mark(name: &OsStr) -> &OsStr {
    let bytes = name.as_bytes();
    OsStr::from_bytes(bytes.strip_suffix(REPLACED).unwrap_or(bytes))
}

/// Finds a file that was installed together with the running program: beside it, or in `../lib/stillpoint`.
///
/// # Errors
/// The folder of the running program, or the reason why it is not known.
pub fn beside(name: &str) -> Result<PathBuf, Missing> {
    let this = this_program().map_err(Missing::Unknown)?;
    let here = this.parent().unwrap_or(Path::new("/"));
    let places = [here.to_owned(), here.join("../lib/stillpoint")];
    let found = places.iter().map(|place| place.join(name));
    found
        .into_iter()
        .find(|path| path.is_file())
        .ok_or_else(|| Missing::Not(here.to_owned()))
}

/// The reason why a part of the installation was not found.
#[derive(Debug, thiserror::Error)]
pub enum Missing {
    #[error("cannot find this program: {0}")]
    Unknown(io::Error),
    #[error("neither in {} nor in ../lib/stillpoint", .0.display())]
    Not(PathBuf),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_mark_is_no_part_of_a_name() {
        let plain = |name: &'static str| without_mark(OsStr::new(name));
        assert_eq!(
            plain("/usr/bin/stillpoint (deleted)"),
            "/usr/bin/stillpoint"
        );
        assert_eq!(plain("/usr/bin/stillpoint"), "/usr/bin/stillpoint");
        assert_eq!(plain("/tmp/a (deleted) b"), "/tmp/a (deleted) b");
    }

    /// The test runs itself as a child, from a copy of its file that is replaced meanwhile.
    #[test]
    fn a_program_that_was_replaced_knows_what_was_installed_with_it() {
        const CHILD: &str = "STILLPOINT_TEST_REPLACED";
        if std::env::var_os(CHILD).is_some() {
            let this = std::fs::read_link("/proc/self/exe").unwrap();
            std::fs::write(this.with_file_name("part"), "").unwrap();
            std::fs::rename(this.with_file_name("newer"), &this).unwrap();
            let now = std::fs::read_link("/proc/self/exe").unwrap();
            assert_ne!(this, now, "the kernel has a mark for it");
            assert_eq!(this_program().unwrap(), this);
            assert_eq!(beside("part").unwrap(), this.with_file_name("part"));
            std::fs::remove_file(&this).unwrap();
            assert_eq!(this_program().unwrap(), this, "removed");
            assert!(matches!(beside("other"), Err(Missing::Not(_))));
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("program");
        std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        std::fs::write(program.with_file_name("newer"), "").unwrap();
        let name = "a_program_that_was_replaced_knows_what_was_installed_with_it";
        let mut child = std::process::Command::new(&program);
        let output = child.arg(name).env(CHILD, "1").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && text.contains("1 passed"),
            "{text}"
        );
    }
}
