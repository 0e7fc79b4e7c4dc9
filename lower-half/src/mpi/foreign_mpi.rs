//! A program that has loaded another MPI than the one that serves it.
//!
//! `stillpoint run` refuses a program that is linked to another MPI before it starts. A library that a program loads later, such as a language's binding or a
//! script's module, is checked when the program starts MPI: that call is the last moment before a handle is misread.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use stillpoint_linkage::{Family, of_library};
use stillpoint_refusals::refusal;
use stillpoint_wrappers::gate::{is_upper, page};

use crate::ground::{proc_files, say};

/// The exit status of a program that was found, but cannot be run.
const NOT_EXECUTABLE: i32 = 126;
/// The lead of rank 0 in reporting an error that all ranks have: its launcher then ends the others, on a busy machine after seconds.
const HEAD_START: Duration = Duration::from_secs(10);
/// The prefix of the names of the upper half's own libraries, which define all of MPI.
const OURS: &str = "libstillpoint_upper_";

/// The family of MPI libraries that programs of this launch are built for.
static PROGRAMS: OnceLock<Family> = OnceLock::new();

/// Notes the ABI, by its name, that programs of this launch are built for.
pub fn programs_are_for(abi: &str) {
    if let Some(family) = Family::of_abi(abi) {
        let _ = PROGRAMS.set(family);
    }
}

/// Ends the process if the application has loaded an MPI of another family, which it has not called yet.
pub fn refuse() {
    let own = PROGRAMS.get().copied().unwrap_or(Family::OpenMpi);
    let Some((family, library)) = loaded(own) else {
        return;
    };
    // SAFETY: the gate page is mapped as long as the process lives.
    if unsafe { page() }.rank.load(Relaxed) > 0 {
        std::thread::sleep(HEAD_START);
    }
    say::line(refusal!(
        OtherMpi,
        "this program has loaded {family} ({}), but it was launched for {own}: use what is built for {own}",
        library.display()
    ));
    // SAFETY: the call ends the process and takes a number; no code of either half must run any more.
    unsafe { libc::_exit(NOT_EXECUTABLE) }
}

/// Returns the MPI in the arena, unless it is of that family.
fn loaded(own: Family) -> Option<(Family, PathBuf)> {
    let maps = proc_files::by("/proc/self/maps").ok()?;
    let files: BTreeSet<&str> = maps.lines().filter_map(code_of_application).collect();
    files.into_iter().find_map(|file| {
        let family = of_library(file.as_ref())?;
        (family != own).then(|| (family, file.into()))
    })
}

/// Returns the file that a line of `/proc/self/maps` shows, if it is the application's code.
fn code_of_application(line: &str) -> Option<&str> {
    let (range, rest) = line.split_once(' ')?;
    let start = usize::from_str_radix(range.split_once('-')?.0, 16).ok()?;
    let file = &line[line.find('/')?..];
    let own = file.rsplit('/').next()?.starts_with(OURS);
    (rest.get(2..3)? == "x" && is_upper(start) && !own).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_of_the_applications_is_looked_at() {
        let file = |line: &str| code_of_application(line).map(str::to_owned);
        let rest = "r-xp 00001000 fe:00 12 /usr/lib/lib mpi.so.12";
        let expected = Some("/usr/lib/lib mpi.so.12".to_owned());
        assert_eq!(file(&format!("110000400000-110000500000 {rest}")), expected);
        assert_eq!(file(&format!("7f0000400000-7f0000500000 {rest}")), None);
        let ours = "110000400000-110000500000 r-xp 0 fe:00 12 /a/libstillpoint_upper_openmpi.so";
        assert_eq!(file(ours), None);
        assert_eq!(
            file("110000400000-110000500000 rw-p 00000000 00:00 0 "),
            None
        );
    }
}
