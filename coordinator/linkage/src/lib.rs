//! The MPI that a program is linked to.
//!
//! A program that was built for one MPI, run with the library of another, crashes at its first call: handles are pointers in one
//! and numbers in the other. So a command that starts a program asks first ([`needed`]). MPI asks again when it starts, for
//! libraries loaded since ([`of_library`]).
//!
//! * [`cache`] - `/etc/ld.so.cache`
//! * [`library`] - one file: what it needs, whether it is an MPI
//! * [`names`] - names that files define and need
//! * [`opened`] - an open library as it describes itself, read without allocation
//! * [`search`] - from a name to a file, as `ld.so` searches

mod cache;
mod library;
mod names;
pub mod opened;
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
    let mut found = None;
    each_loaded(program, variable, |library| {
        found = library.family.map(|family| Needed {
            family,
            library: library.path.clone(),
        });
        match found {
            Some(_) => Next::End,
            None => Next::Below,
        }
    });
    found
}

/// A name of its MPI that a program needs, and that the library in the MPI's place lacks; or the name of an MPI in whose place none stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingName {
    /// The file that needs it.
    pub by: PathBuf,
    pub name: String,
}

/// Returns the first such name of the program and of the libraries that it loads at its start. `stands_in`: the library in the place of MPIs of that family.
pub fn missing(
    program: &Path,
    stands_in: &Path,
    family: Family,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Option<MissingName> {
    let (mut users, mut real, mut others, mut unknown) = (vec![], vec![], vec![], None);
    each_loaded(program, variable, |library| {
        let name = library.soname.as_deref().unwrap_or_default();
        if library.family.is_some() && !family.libraries().contains(&name) {
            unknown.get_or_insert(MissingName {
                by: library.path.clone(),
                name: name.to_owned(),
            });
        }
        if library.family.is_some() || is_part_of_mpi(&library.path) {
            real.push(library.path.clone());
            return Next::Beside;
        }
        if library
            .needs
            .iter()
            .any(|name| is_part_of_mpi(name.as_ref()))
        {
            users.push(library.path.clone());
        }
        others.push(library.path.clone());
        Next::Below
    });
    if unknown.is_some() || users.is_empty() || real.is_empty() {
        return unknown;
    }
    names::missing(&users, stands_in, &real, &others)
}

/// Whether a file's name is that of an MPI library, or of one that it consists of.
fn is_part_of_mpi(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.unwrap_or_default();
    ["libmpi.", "libmpich.", "libmpi_abi.", "libopen-"]
        .iter()
        .any(|beginning| name.starts_with(beginning))
}

/// The libraries to look at next.
enum Next {
    /// The libraries that it needs too.
    Below,
    /// Other libraries only.
    Beside,
    /// Nothing.
    End,
}

/// Calls `look` for a program and each library that `ld.so` would load for it, in the order of `ld.so`: the program, preloaded libraries, and then breadth
/// first what these need.
fn each_loaded(
    program: &Path,
    variable: impl Fn(&str) -> Option<OsString>,
    mut look: impl FnMut(&Library) -> Next,
) {
    let search = Search::new(&variable);
    let mut seen = HashSet::new();
    let mut next = VecDeque::new();
    next.extend(Library::open(program).map(|library| (library, vec![])));
    for path in search.preloaded() {
        next.extend(Library::open(&path).map(|library| (library, vec![])));
    }
    while let Some((library, mut loaders)) = next.pop_front() {
        match look(&library) {
            Next::Below => {}
            Next::Beside => continue,
            Next::End => return,
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
}
