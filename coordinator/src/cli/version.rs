//! `stillpoint --version`: the version, and the contract between the halves of what is installed with it.

use std::fmt::Write;

use super::start::Siblings;
use super::{Outcome, print};

/// What an upper half's library exports its contract as.
const CONTRACT: &str = "stillpoint_contract";
/// The programs that there are upper halves for.
const PROGRAMS: [&str; 2] = ["openmpi", "abi"];

/// After clap's line, which begins with the command's name: a line for each upper half. It is the library's own word, since another one may
/// have been put in its place.
pub fn show(first: &str) -> Outcome {
    let mut text = first.to_owned();
    for program in PROGRAMS {
        let _ = writeln!(text, "{}", contract(program));
    }
    print(&text)
}

fn contract(program: &str) -> String {
    match Siblings::upper(program) {
        Ok(library) => match stillpoint_linkage::number(&library, CONTRACT) {
            Some(number) => format!("contract {number:08x} ({})", library.display()),
            None => format!("contract unknown ({} tells none)", library.display()),
        },
        Err(failure) => format!("contract unknown ({failure})"),
    }
}
