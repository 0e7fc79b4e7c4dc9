//! Commands inside of a job, such as a script that runs under `stillpoint run` and starts its program with `stillpoint run`.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::process::Command;

use stillpoint_protocol::launch::RANK_MARK;

use stillpoint_refusals::Code;

use super::Failure;

/// Whether this process is a rank of a job: its lower half has a mapping at an address that no other program uses.
pub fn a_rank() -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    has_mark(&maps)
}

fn has_mark(maps: &str) -> bool {
    let start = format!("{RANK_MARK:x}-");
    maps.lines().any(|line| line.starts_with(&start))
}

/// Becomes the program, which is part of the job already.
pub fn go_on(program: &OsStr, arguments: &[OsString]) -> Failure {
    let error = Command::new(program).args(arguments).exec();
    Failure::refuse(
        Code::NoProgram,
        Failure::FAILED,
        format!("{}: {error}", program.to_string_lossy()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_tells_a_rank() {
        assert!(!a_rank());
        assert!(has_mark(
            "2a0000000000-2a0000001000 r--p 0 0:0 0\n550000000000-550000001000 rw-p 00000000 00:00 0\n"
        ));
        assert!(!has_mark(
            "1550000000000-1550000001000 rw-p 00000000 00:00 0\n"
        ));
    }
}
