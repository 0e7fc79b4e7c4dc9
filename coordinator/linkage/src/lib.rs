//! The MPI that a program is linked to.
//!
//! A program that was built for one MPI, run with the library of another, crashes at its first call: handles are pointers in one
//! and numbers in the other. So a command that starts a program asks first ([`needed`]). MPI asks again when it starts, for
//! libraries loaded since ([`of_library`]).
//!
//! * [`cache`] - `/etc/ld.so.cache`
//! * [`library`] - one file: what it needs, whether it is an MPI
//! * [`search`] - from a name to a file, as `ld.so` searches

mod cache;
mod library;
mod search;

use std::collections::{HashSet, VecDeque};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use library::Library;
pub use library::{Family, number, of_library};
use search::Search;

/// The MPI that a program needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needed {
    pub family: Family,
    /// The file of the library.
    pub library: PathBuf,
}

/// Returns the file that `ld.so` would load for a library's name in a program without search paths of its own.
pub fn found(name: &str, variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let search = Search::new(&variable);
    let nobody = Library::default();
    Some(search.find(name, &nobody, &[])?.path)
}

/// Returns the MPI that `program`, or a library that it needs, is linked to. Returns `None` if there is none to be found: the program may
/// use none, or load one later. `variable` gives the environment that the program is to be started with.
pub fn needed(program: &Path, variable: impl Fn(&str) -> Option<OsString>) -> Option<Needed> {
    let search = Search::new(&variable);
    let mut seen = HashSet::new();
    let mut next = VecDeque::new();
    // In the order of `ld.so`: the program, preloaded libraries, and then breadth first what these need.
    next.extend(Library::open(program).map(|library| (library, vec![])));
    for path in search.preloaded() {
        next.extend(Library::open(&path).map(|library| (library, vec![])));
    }
    while let Some((library, mut loaders)) = next.pop_front() {
        if let Some(family) = library.family {
            let library = library.path;
            return Some(Needed { family, library });
        }
        loaders.push(search.rpath(&library));
        for name in &library.needs {
            if seen.insert(name.clone())
                && let Some(found) = search.find(name, &library, &loaders)
            {
                next.push_back((found, loaders.clone()));
            }
        }
    }
    None
}
