//! A program's MPI: which one it is, and how the program gets the stubs.

use std::env;
use std::path::Path;

use stillpoint_linkage::{Needed, missing, needed};

use super::{Row, row};
use crate::program::find_program;
use crate::siblings::Siblings;

/// Returns the row for a program.
pub fn of(program: &Path) -> Row {
    const WHAT: &str = "MPI of the program";
    let program = match find_program(program.as_os_str()) {
        Ok(program) => program,
        Err(failure) => return row(WHAT, true, false, failure.to_string()),
    };
    let variable = |name: &str| env::var_os(name);
    let Some(Needed { family, library }) = needed(&program, variable) else {
        let found = "it is linked to none; if it loads one, it gets the library of stubs";
        return row(WHAT, false, true, found);
    };
    let stubs = match Siblings::upper(family.word()) {
        Ok(stubs) => stubs,
        Err(failure) => return row(WHAT, true, false, failure.to_string()),
    };
    let library = library.display();
    match missing(&program, &stubs, family, variable) {
        None => row(
            WHAT,
            true,
            true,
            format!("{family}: the library of stubs stands in the place of {library}"),
        ),
        Some(lacking) => row(
            WHAT,
            true,
            true,
            format!(
                "{family}: the library of stubs is preloaded and {library} is loaded too, since {} needs its {}; \
                 preloaded tools see no calls",
                lacking.by.display(),
                lacking.name
            ),
        ),
    }
}
