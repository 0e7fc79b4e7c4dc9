//! Paths below `/proc` that name a process or thread by its id: `/proc/PID/...`, `/proc/PID/task/TID/...`,
//! `/proc/self/task/TID/...`.
//!
//! Rules of this place: runs in the trap's handler.

use super::{identity, user};
use crate::gate::identity::restarted;

const PROC: &[u8] = b"/proc/";
const TASK: &[u8] = b"task";

/// The size of the longest path that is handled, its NUL included.
const ROOM: usize = 256;

/// A path that ends in NUL.
pub struct Path {
    bytes: [u8; ROOM],
    length: usize,
}

impl Path {
    const EMPTY: Path = Path {
        bytes: [0; ROOM],
        length: 0,
    };

    pub fn address(&self) -> usize {
        self.bytes.as_ptr() as usize
    }

    /// Returns the link that leads to an open directory, or to the working directory.
    pub fn of_directory(number: i32) -> Option<Path> {
        let mut path = Path::EMPTY;
        if number == libc::AT_FDCWD {
            path.push(b"/proc/self/cwd")?;
        } else {
            path.push(b"/proc/self/fd/")?;
            path.push_number(u32::try_from(number).ok()?)?;
        }
        Some(path)
    }

    /// Appends bytes and a NUL; returns `None` if they do not fit.
    fn push(&mut self, more: &[u8]) -> Option<()> {
        let end = self.length + more.len();
        if end >= ROOM {
            return None;
        }
        self.bytes.get_mut(self.length..end)?.copy_from_slice(more);
        self.length = end;
        Some(())
    }

    fn push_number(&mut self, number: u32) -> Option<()> {
        let mut digits = [0; 10];
        let (mut at, mut left) = (digits.len(), number);
        loop {
            at -= 1;
            *digits.get_mut(at)? = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                return self.push(digits.get(at..)?);
            }
        }
    }
}

/// Parses a number as `/proc` writes it.
pub fn number(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() || digits.len() > 9 || digits.first() == Some(&b'0') {
        return None;
    }
    digits.iter().try_fold(0u32, |sum, digit| {
        digit
            .is_ascii_digit()
            .then(|| sum.wrapping_mul(10).wrapping_add(u32::from(digit - b'0')))
    })
}

/// Returns the path with the kernel's ids in place of the application's, or `None` if nothing changes.
pub fn real(path: usize) -> Option<Path> {
    if !restarted() {
        return None;
    }
    rewrite(user::text(path)?, identity::real_thread)
}

fn rewrite(path: &[u8], real: impl Fn(u32) -> u32) -> Option<Path> {
    let rest = path.strip_prefix(PROC)?;
    let mut written = Path::EMPTY;
    written.push(PROC)?;
    let mut changed = false;
    let mut push_id = |written: &mut Path, id: u32| {
        changed |= real(id) != id;
        written.push_number(real(id))
    };
    let (process, mut rest) = component(rest);
    match number(process) {
        Some(id) => push_id(&mut written, id)?,
        None if process == b"self" => written.push(process)?,
        None => return None,
    }
    if let (TASK, thread) = component(rest.strip_prefix(b"/").unwrap_or_default())
        && let (thread, behind) = component(thread.strip_prefix(b"/").unwrap_or_default())
        && let Some(id) = number(thread)
    {
        written.push(b"/task/")?;
        push_id(&mut written, id)?;
        rest = behind;
    }
    written.push(rest)?;
    changed.then_some(written)
}

/// Whether a path, given in parts, is `/proc/PID/exe` or `/proc/PID/task/TID/exe` with ids that `own` accepts.
pub fn leads_to_executable(parts: &[&[u8]], own: impl Fn(u32) -> bool) -> bool {
    let is_own = |id: &[u8]| number(id).is_some_and(&own);
    let mut components = parts
        .iter()
        .flat_map(|part| part.split(|byte| *byte == b'/'))
        .filter(|component| !component.is_empty() && *component != b".");
    let mut next = || components.next().unwrap_or_default();
    if next() != b"proc" {
        return false;
    }
    let process = next();
    if !matches!(process, b"self" | b"thread-self") && !is_own(process) {
        return false;
    }
    let mut last = next();
    if last == TASK && is_own(next()) {
        last = next();
    }
    last == b"exe" && next().is_empty()
}

/// Splits a path into its first component and the rest, which begins with the slash.
fn component(path: &[u8]) -> (&[u8], &[u8]) {
    let end = path.iter().position(|byte| *byte == b'/');
    path.split_at(end.unwrap_or(path.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids below 100 are 1000 higher in the kernel.
    fn rewritten(path: &str) -> Option<String> {
        let real = |id| if id < 100 { id + 1000 } else { id };
        let path = rewrite(path.as_bytes(), real)?;
        assert_eq!(path.bytes.get(path.length), Some(&0));
        Some(String::from_utf8_lossy(path.bytes.get(..path.length)?).into_owned())
    }

    #[test]
    fn ids_in_paths_become_the_kernels() {
        for (path, real) in [
            ("/proc/7", "/proc/1007"),
            ("/proc/7/status", "/proc/1007/status"),
            ("/proc/7/fd/7", "/proc/1007/fd/7"),
            ("/proc/7/task", "/proc/1007/task"),
            ("/proc/7/task/99/comm", "/proc/1007/task/1099/comm"),
            ("/proc/self/task/10/comm", "/proc/self/task/1010/comm"),
            ("/proc/500/task/10", "/proc/500/task/1010"),
        ] {
            assert_eq!(rewritten(path).as_deref(), Some(real));
        }
    }

    #[test]
    fn the_executable_has_many_names() {
        let leads = |parts: &[&str]| {
            let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
            leads_to_executable(&parts, |id| id == 7 || id == 8)
        };
        for path in [
            "/proc/self/exe",
            "/proc/thread-self/exe",
            "/proc/7/exe",
            "/proc/8/exe",
            "//proc/./self//exe",
            "/proc/self/task/8/exe",
            "/proc/7/task/7/exe",
        ] {
            assert!(leads(&[path]), "{path}");
        }
        assert!(leads(&["/proc/7", "exe"]) && leads(&["/proc", "7/./exe"]));
        for path in [
            "/proc/9/exe",
            "/proc/self/exe/x",
            "/proc/self/task/9/exe",
            "/proc/self/cwd/exe",
            "/tmp/proc/self/exe",
            "/proc/exe",
            "exe",
        ] {
            assert!(!leads(&[path]), "{path}");
        }
    }

    #[test]
    fn other_paths_stay() {
        let long = format!("/proc/7/{}", "x".repeat(ROOM));
        for path in [
            "",
            "/proc",
            "/proc/",
            "/proc/self",
            "/proc/self/status",
            "/proc/self/task",
            "/proc/self/task/500/comm",
            "/proc/500/status",
            "/proc/sys/7",
            "/proc/07",
            "/proc/7x",
            "/tmp/7",
            &long,
        ] {
            assert_eq!(rewritten(path), None, "{path}");
        }
    }
}
