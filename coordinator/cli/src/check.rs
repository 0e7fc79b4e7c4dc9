//! `stillpoint check`: what this machine offers, row by row.

mod gpu;
mod mpi;
mod program;
mod site;

use std::path::PathBuf;
use std::process::{Command, Stdio};

use clap::Args;
use serde::Serialize;
use stillpoint_protocol::installed::beside;
use stillpoint_protocol::namespace::Namespace;
use stillpoint_tracking::all_faults;
use stillpoint_tracking::offer::{self, Offer};

use self::mpi::Mpis;

use super::kernel::Kernel;
use super::{CommandResult, Failure, print, print_json};

/// Show what this machine offers: kernel, processor, GPUs, MPI libraries, launchers, and the result for each pair of MPIs
///
/// Ends with status 1 if something that Stillpoint needs is missing.
#[derive(Debug, Args)]
pub struct Check {
    /// Print JSON: {"ok": BOOL, "rows": [{"what", "needed", "ok", "found"}...], "mpi": {"abis", "libraries", "launchers", "pairs"}}
    #[arg(long, env = "STILLPOINT_JSON")]
    json: bool,

    /// Tell how this program, a file, gets the stubs
    #[arg(last = true, value_name = "PROGRAM")]
    program: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct Row {
    what: &'static str,
    /// Whether Stillpoint needs it.
    needed: bool,
    ok: bool,
    found: String,
}

/// The kernel of [`stillpoint_image::facts::OLDEST_KERNEL`], in words.
const KERNEL: &str = "Linux 5.11 or later";

#[derive(Serialize)]
struct Shown {
    ok: bool,
    rows: Vec<Row>,
    mpi: Mpis,
}

impl Check {
    pub fn execute(self) -> CommandResult {
        let mut rows = rows();
        rows.extend(self.program.as_deref().map(program::of));
        let missing: Vec<&str> = rows
            .iter()
            .filter(|row| row.needed && !row.ok)
            .map(|row| row.what)
            .collect();
        let failure = (!missing.is_empty())
            .then(|| Failure::failed(format!("this machine lacks: {}", missing.join(", "))));
        if self.json {
            let ok = failure.is_none();
            let mpi = Mpis::here();
            print_json(&Shown { ok, rows, mpi })?;
        } else {
            let mut text = String::new();
            for row in &rows {
                let mark = match (row.ok, row.needed) {
                    (true, _) => "yes",
                    (false, true) => "NO",
                    (false, false) => "no",
                };
                text.push_str(&format!("{:<40} {mark:<4} {}\n", row.what, row.found));
            }
            text.push_str(&Mpis::here().in_words());
            print(&text)?;
        }
        failure.map_or(Ok(()), Err)
    }
}

fn rows() -> Vec<Row> {
    let mut rows = vec![
        architecture(),
        kernel(),
        seccomp(),
        membarrier(),
        fsgsbase(),
        processes(),
        tracking(),
        lazy(),
        sibling("Open MPI lower half", true, "stillpoint-lower-openmpi"),
        launcher(),
        sibling("MPICH lower half", false, "stillpoint-lower-mpich"),
    ];
    rows.extend(gpu::rows());
    rows.extend(site::rows());
    rows
}

fn row(what: &'static str, needed: bool, ok: bool, found: impl Into<String>) -> Row {
    let found = found.into();
    Row {
        what,
        needed,
        ok,
        found,
    }
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

fn architecture() -> Row {
    let name = std::env::consts::ARCH;
    row("processor x86-64", true, name == "x86_64", name)
}

fn kernel() -> Row {
    let kernel = Kernel::here();
    row(KERNEL, true, kernel.is_new_enough(), kernel.release)
}

/// The ways to find written memory for `--incremental`: the one that is taken, and the others with the reason why they are not offered.
fn tracking() -> Row {
    let (there, others): (Vec<Offer>, Vec<Offer>) = offer::all()
        .into_iter()
        .partition(|offer| offer.lacks.is_none());
    let names: Vec<&str> = there.iter().map(|offer| offer.tracking.name()).collect();
    let taken = there
        .first()
        .map(|offer| offer.tracking)
        .unwrap_or_default();
    let mut found = names.join(", ");
    if !taken.tells_pages() {
        found += ": all memory is hashed";
    }
    for Offer { tracking, lacks } in others {
        found += &format!("; not {tracking}: {}", lacks.unwrap_or_default());
    }
    row(
        "writes tracked (--incremental)",
        false,
        taken.tells_pages(),
        found,
    )
}

/// The requirement of `--lazy`, which lets the application run before all memory is there: reports of the kernel's own accesses too.
fn lazy() -> Row {
    let (ok, found) = match all_faults::open() {
        Ok(_) => (true, "userfaultfd, the kernel's accesses too".to_owned()),
        Err(error) => (
            false,
            format!(
                "userfaultfd: {error} (sysctl vm.unprivileged_userfaultfd=1, or read access to /dev/userfaultfd): all memory is read first"
            ),
        ),
    };
    row("memory fetched as it is touched (--lazy)", false, ok, found)
}

fn seccomp() -> Row {
    let actions = read("/proc/sys/kernel/seccomp/actions_avail");
    let ok = actions
        .split_ascii_whitespace()
        .any(|action| action == "trap");
    row("seccomp filters with trap", true, ok, actions)
}

fn membarrier() -> Row {
    let offered = rustix::thread::membarrier_query();
    let ok = offered.contains_command(rustix::thread::MembarrierCommand::PrivateExpedited);
    row("membarrier", true, ok, "private expedited")
}

/// AT_HWCAP2 bit 1 (Documentation/arch/x86/x86_64/fsgs.rst): without it a crossing costs two system calls.
fn fsgsbase() -> Row {
    const AT_HWCAP2: u64 = 26;
    let vector = std::fs::read("/proc/self/auxv").unwrap_or_default();
    let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_ne_bytes);
    let bits = vector
        .chunks_exact(16)
        .find(|pair| word(&pair[..8]) == AT_HWCAP2)
        .map_or(0, |pair| word(&pair[8..]));
    let ok = bits & 2 != 0;
    row(
        "fast crossing (FSGSBASE)",
        false,
        ok,
        if ok { "" } else { "crossings take longer" },
    )
}

/// A container may have no `/proc`, or its host's.
fn processes() -> Row {
    let shown = Namespace::own();
    let found = shown.map_or_else(|strange| strange.to_string(), |_| "/proc/self".to_owned());
    row("processes shown (/proc)", true, shown.is_ok(), found)
}

fn sibling(what: &'static str, needed: bool, name: &str) -> Row {
    match beside(name) {
        Ok(path) => row(what, needed, true, path.display().to_string()),
        Err(missing) => row(what, needed, false, format!("{name} is {missing}")),
    }
}

fn launcher() -> Row {
    let output = Command::new("mpirun")
        .arg("--version")
        .stdin(Stdio::null())
        .output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let first = text
        .unwrap_or_default()
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned();
    row(
        "mpirun of Open MPI",
        false,
        first.contains("Open MPI"),
        first,
    )
}

#[cfg(test)]
mod tests {
    use stillpoint_image::facts::OLDEST_KERNEL;

    use super::*;

    /// The check, the image format and the README name the same oldest kernel.
    #[test]
    fn one_kernel_is_the_oldest() {
        let (major, minor) = OLDEST_KERNEL;
        assert_eq!(KERNEL, format!("Linux {major}.{minor} or later"));
        let readme = include_str!("../../../README.md");
        assert!(readme.contains(&format!("kernel {major}.{minor} or newer")));
    }
}
