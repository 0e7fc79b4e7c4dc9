//! `stillpoint --version`: the version, and the contract between the halves of this installation.

use std::fmt::Write;
use std::path::Path;

use stillpoint_linkage::Family;

use super::siblings::Siblings;
use super::{CommandResult, print};

/// The symbol with the contract in an upper half's library.
const CONTRACT: &str = "stillpoint_contract";

/// Prints clap's line, which begins with the command's name, and a line for each installed upper half. Its contract is read from the library itself, which
/// may have been replaced.
pub fn show(first: &str) -> CommandResult {
    let libraries: Vec<_> = Family::ALL
        .iter()
        .filter_map(|family| Siblings::upper(family.word()).ok())
        .collect();
    let mut text = first.to_owned();
    for library in &libraries {
        let _ = writeln!(text, "{}", contract(library));
    }
    if libraries.is_empty() {
        text.push_str(
            "contract unknown (no libstillpoint_upper_*.so is installed with this program)\n",
        );
    }
    print(&text)
}

fn contract(library: &Path) -> String {
    match stillpoint_linkage::number(library, CONTRACT) {
        Some(number) => format!("contract {number:08x} ({})", library.display()),
        None => format!("contract unknown ({} does not state it)", library.display()),
    }
}
