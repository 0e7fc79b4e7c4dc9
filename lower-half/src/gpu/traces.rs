//! Traces of a GPU's driver in this process. Anything open or mapped under a path that begins with [`FILES`] belongs to the driver.

use std::fs;
use std::io;

use crate::gate::descriptors;
use crate::gate::memory;
use crate::ground::{proc_files, socket_names};

/// The prefix of the paths of the driver's files.
const FILES: &str = "/dev/nvidia";
/// The prefix of the file name of the driver's library.
const LIBRARY: &str = "libcuda.so.";

/// Whether a path is one of the driver's files.
pub fn is_file(path: &str) -> bool {
    path.starts_with(FILES)
}

/// Whether a socket's name is one that a driver's library gives: abstract, `cuda-uvmfd-`, the process's namespace, `-`, its id. Other processes' drivers
/// reach its memory by it.
pub fn is_socket(name: &[u8]) -> bool {
    socket_names::abstract_name(name).is_some_and(|name| name.starts_with(b"\0cuda-uvmfd-"))
}

/// Returns such a name for a restart. The driver's own has the process's id of the first launch, which another process here may have; only drivers that share
/// memory look for it, and that cannot be carried.
pub fn socket_name(pid: u32) -> Vec<u8> {
    let family = (libc::AF_UNIX as u16).to_ne_bytes();
    let since = std::time::UNIX_EPOCH
        .elapsed()
        .unwrap_or_default()
        .as_nanos();
    let name = format!("\0cuda-uvmfd-restarted-{pid}-{since}");
    [family.as_slice(), name.as_bytes()].concat()
}

fn is_library(path: &str) -> bool {
    path.rsplit('/')
        .next()
        .is_some_and(|name| name.starts_with(LIBRARY))
}

/// Whether the application uses a GPU: it has the driver's library, and some of the driver's files.
pub fn in_use() -> bool {
    let Ok(maps) = maps() else {
        return false;
    };
    let paths = || mapped(&maps);
    paths().any(is_library) && (paths().any(is_file) || !open_files().is_empty())
}

/// Describes, for people, the driver's files that the application still has.
///
/// # Errors
/// If the memory map cannot be read.
pub fn left() -> io::Result<Vec<String>> {
    let maps = maps()?;
    let mapped = mapped(&maps).filter(|path| is_file(path));
    let mut left: Vec<String> = mapped.map(|path| format!("{path} (mapped)")).collect();
    left.extend(
        open_files()
            .into_iter()
            .map(|(number, path)| format!("{path} (descriptor {number})")),
    );
    left.dedup();
    Ok(left)
}

/// Descriptors of the application that lead to the driver's files.
pub fn open_files() -> Vec<(i32, String)> {
    let numbers = descriptors::upper().into_iter();
    let links = numbers.filter_map(|number| {
        let link = fs::read_link(format!("/proc/self/fd/{number}")).ok()?;
        Some((number, link.to_string_lossy().into_owned()))
    });
    links.filter(|(_, link)| is_file(link)).collect()
}

fn maps() -> io::Result<Vec<u8>> {
    proc_files::bytes("/proc/self/maps")
}

/// Returns the paths of the files that the upper half has mapped.
fn mapped(maps: &[u8]) -> impl Iterator<Item = &str> {
    let lines = maps.split(|byte| *byte == b'\n');
    lines
        .filter_map(|line| std::str::from_utf8(line).ok())
        .filter_map(line)
        .filter(|(start, _)| memory::owns(*start))
        .map(|(_, path)| path)
}

/// Start and path of a line.
fn line(text: &str) -> Option<(usize, &str)> {
    let (range, _) = text.split_once(' ')?;
    let start = usize::from_str_radix(range.split_once('-')?.0, 16).ok()?;
    let path = text.splitn(6, ' ').nth(5)?.trim_start();
    path.starts_with('/').then_some((start, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drivers_files_and_library_are_known_by_name() {
        assert!(is_file("/dev/nvidiactl") && is_file("/dev/nvidia-uvm"));
        assert!(!is_file("/dev/null") && !is_file("/tmp/nvidia"));
        assert!(is_library("/usr/lib/x86_64-linux-gnu/libcuda.so.615.10"));
        assert!(!is_library("/opt/cuda/libcudart.so.13") && !is_library("/opt/libcuda.so"));
    }

    #[test]
    fn only_what_is_mapped_in_the_upper_half_counts() {
        let maps = "\
200000000-200001000 rw-s 00000000 00:05 7                                /dev/nvidia0 (deleted)
200001000-200002000 rw-p 00000000 00:00 0 
7f0000000000-7f0000001000 r-xp 00000000 00:05 8                          /usr/lib/libcuda.so.1
[anon]
";
        let found: Vec<&str> = mapped(maps.as_bytes()).collect();
        assert_eq!(found, ["/dev/nvidia0 (deleted)"]);
    }
}
