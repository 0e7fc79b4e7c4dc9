//! From a library's name to its file, in the way of `ld.so` (man 8 ld.so).
//!
//! Directories of libraries for newer processors (`glibc-hwcaps`) are left out: every library there also lies beside them, for all
//! processors.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::cache::Cache;
use crate::library::Library;

/// The directories that `ld.so` searches if nothing else names one.
const DEFAULT: [&str; 6] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];

/// The environment of a search, apart from the library that needs another.
pub(crate) struct Search {
    /// `LD_LIBRARY_PATH`.
    environment: Vec<PathBuf>,
    preload: Option<String>,
    cache: Cache,
}

impl Search {
    pub fn new(variable: &impl Fn(&str) -> Option<OsString>) -> Search {
        let text = |name: &str| Some(variable(name)?.to_string_lossy().into_owned());
        let path = text("LD_LIBRARY_PATH").unwrap_or_default();
        Search {
            environment: directories(&path, Path::new("/")),
            preload: text("LD_PRELOAD"),
            cache: Cache::read(),
        }
    }

    /// Returns the libraries of `LD_PRELOAD`.
    pub fn preloaded(&self) -> Vec<PathBuf> {
        let names = self.preload.iter().flat_map(|list| list.split([':', ' ']));
        let names = names.filter(|name| !name.is_empty());
        let nobody = Library::default();
        names
            .filter_map(|name| Some(self.find(name, &nobody, &[])?.path))
            .collect()
    }

    /// Returns the directories that a library adds to the search of everything that is loaded because of it.
    pub fn rpath(&self, library: &Library) -> Vec<PathBuf> {
        match (&library.runpath, &library.rpath) {
            (None, Some(rpath)) => directories(rpath, &origin(&library.path)),
            _ => vec![],
        }
    }

    /// Returns the file of a library that `by` needs. `loaders` holds the [`Search::rpath`] of `by` (last) and of the libraries that it was
    /// loaded by.
    pub fn find(&self, name: &str, by: &Library, loaders: &[Vec<PathBuf>]) -> Option<Library> {
        if name.contains('/') {
            return Library::open(&expanded(name, &origin(&by.path)));
        }
        let rpaths = loaders.iter().rev().flatten();
        // With `DT_RUNPATH` in the library itself, its loaders' paths do not count.
        let rpaths = rpaths.filter(|_| by.runpath.is_none());
        let runpath = by.runpath.as_deref().unwrap_or_default();
        let runpath = directories(runpath, &origin(&by.path));
        let places = rpaths.chain(&self.environment).chain(&runpath);
        let places = places.map(|directory| directory.join(name));
        let defaults = DEFAULT
            .iter()
            .map(|directory| Path::new(directory).join(name));
        let mut places = places.chain(self.cache.find(name)).chain(defaults);
        places.find_map(|path| Library::open(&path))
    }
}

/// Returns the directories of a list. An empty entry is the working directory.
fn directories(list: &str, origin: &Path) -> Vec<PathBuf> {
    if list.is_empty() {
        return vec![];
    }
    let parts = list.split([':', ';']);
    parts
        .map(|part| match part {
            "" => PathBuf::from("."),
            part => expanded(part, origin),
        })
        .collect()
}

/// Replaces `$ORIGIN`, `$LIB` and `$PLATFORM`, with braces or without.
fn expanded(path: &str, origin: &Path) -> PathBuf {
    let origin = origin.to_string_lossy();
    let words = [
        ("ORIGIN", &*origin),
        ("LIB", "lib/x86_64-linux-gnu"),
        ("PLATFORM", "x86_64"),
    ];
    let path = words.iter().fold(path.to_owned(), |path, (word, value)| {
        path.replace(&format!("${{{word}}}"), value)
            .replace(&format!("${word}"), value)
    });
    PathBuf::from(path)
}

/// Returns the directory that a library lies in.
fn origin(path: &Path) -> PathBuf {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    path.parent().unwrap_or(Path::new("/")).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_directories_are_read_as_the_linker_reads_them() {
        let read = |list: &str| directories(list, Path::new("/opt/app/bin"));
        assert!(read("").is_empty());
        assert_eq!(
            read("/a:$ORIGIN/../lib:${ORIGIN}:/usr/$LIB:"),
            [
                "/a",
                "/opt/app/bin/../lib",
                "/opt/app/bin",
                "/usr/lib/x86_64-linux-gnu",
                "."
            ]
            .map(PathBuf::from)
        );
    }
}
