//! The process's mappings, as `/proc/self/smaps` shows them.

use std::io::{self, BufRead, BufReader, Read};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use stillpoint_image::format::vm_flags;
use stillpoint_tracking::pagemap;

use crate::gate::memory;
use crate::ground::{free, proc_files};

/// One line of `/proc/self/maps`, with what smaps adds to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
    pub start: usize,
    pub end: usize,
    /// `PROT_READ`, `PROT_WRITE`, `PROT_EXEC`.
    pub protection: i32,
    pub shared: bool,
    pub offset: u64,
    pub device: u64,
    pub inode: u64,
    /// The name as shown; it ends in ` (deleted)` if the file has lost it.
    pub name: String,
    /// Bytes that are in memory or swapped out.
    pub present: u64,
    /// Bytes that are swapped out.
    pub swapped: u64,
    /// Bits of [`vm_flags`].
    pub vm_flags: u64,
    /// Memory of a device, or other memory that is not made of pages.
    pub device_memory: bool,
    /// A shared mapping through which the file can be, or could be made, written.
    pub may_write: bool,
    /// The mapping's page faults are handled with `userfaultfd`.
    pub userfault: bool,
    /// Kept from being swapped out.
    pub locked: bool,
    /// Locked page by page, as the pages are touched.
    pub on_fault: bool,
}

impl Mapping {
    pub fn bytes(&self) -> usize {
        self.end - self.start
    }

    pub fn addresses(&self) -> Range<usize> {
        self.start..self.end
    }

    /// Returns whether the file behind it has lost its name, or was made up by the kernel.
    pub fn deleted(&self) -> bool {
        self.name.ends_with(" (deleted)")
    }

    /// Returns the name without the kernel's remark.
    pub fn path(&self) -> &str {
        self.name.strip_suffix(" (deleted)").unwrap_or(&self.name)
    }

    /// Returns whether `/proc/self/maps` shows the same mapping.
    fn is_still(&self, head: &Mapping) -> bool {
        (self.start, self.end, self.protection, self.shared)
            == (head.start, head.end, head.protection, head.shared)
            && (self.offset, self.device, self.inode) == (head.offset, head.device, head.inode)
            && self.name == head.name
    }

    /// Returns this part of the mapping.
    fn part(&self, part: Range<usize>) -> Mapping {
        let skipped = (part.start - self.start) as u64;
        Mapping {
            start: part.start,
            end: part.end,
            offset: self.offset + if self.inode == 0 { 0 } else { skipped },
            ..self.clone()
        }
    }

    pub fn range(&self) -> String {
        format!("{:#x}..{:#x}", self.start, self.end)
    }
}

/// Returns the upper half's mappings, in order of address. The kernel may show memory of both halves as one mapping if they touch.
#[cfg(test)]
pub fn upper() -> io::Result<Vec<Mapping>> {
    Seen::default().upper()
}

/// The mappings as one attempt has seen them. The kernel goes through every page to report the details of a mapping. So they are
/// read before the application stands still, and read again only if mappings or their details have changed since.
/// `/proc/self/maps` shows changes of mappings, and the gate counts changes of details.
#[derive(Debug, Default)]
pub struct Seen(Mutex<Option<Known>>);

#[derive(Debug)]
struct Known {
    mappings: Vec<Mapping>,
    /// The state when they were read.
    since: Since,
}

/// The state on which the details depend.
#[derive(Debug, PartialEq, Eq)]
struct Since {
    changes: u64,
    /// The result of `PR_GET_MEMORY_MERGE`, which concerns all mappings.
    merges: i32,
    /// The number of pages swapped out: which ones these are changes by itself.
    swapped_out: Option<u64>,
}

impl Since {
    fn now() -> Since {
        const PR_GET_MEMORY_MERGE: libc::c_int = 68;
        Since {
            changes: memory::changes(),
            // SAFETY: prctl with these arguments only reads a setting, and touches no memory.
            merges: unsafe { libc::prctl(PR_GET_MEMORY_MERGE, 0, 0, 0, 0) },
            swapped_out: free::swapped_out(),
        }
    }
}

impl Known {
    fn read() -> io::Result<Known> {
        // The order matters: mappings that change in between are read again.
        let since = Since::now();
        let mappings = read(proc_files::bytes("/proc/self/smaps")?.as_slice())?;
        Ok(Known { mappings, since })
    }
}

impl Seen {
    /// Reads the mappings ahead, while the application runs. If that fails, they are read later.
    pub fn ahead() -> Seen {
        Seen(Mutex::new(Known::read().ok()))
    }

    /// Does the same as [`upper`].
    pub fn upper(&self) -> io::Result<Vec<Mapping>> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_valid = |known: &&Known| known.since == Since::now() && pagemap::are_found_quickly();
        let known = seen.as_ref().filter(is_valid);
        let has_parts = |it: &Mapping| !memory::parts(it.start..it.end).is_empty();
        let known = match known {
            Some(known) => again(&known.mappings, without_details()?, has_parts),
            None => None,
        };
        let all = match known {
            Some(known) => known,
            None => seen.insert(Known::read()?).mappings.clone(),
        };
        let since = seen.as_ref().and_then(|known| known.since.swapped_out);
        *SWAPPED_OUT.lock().unwrap_or_else(PoisonError::into_inner) = since;
        let own = |mapping: Mapping| {
            let parts = memory::parts(mapping.start..mapping.end);
            parts.into_iter().map(move |part| mapping.part(part))
        };
        Ok(all.into_iter().flat_map(own).collect())
    }
}

/// The number of pages that the node had swapped out before details were last read.
static SWAPPED_OUT: Mutex<Option<u64>> = Mutex::new(None);

/// Returns whether pages may have been swapped out since details were read.
pub fn may_have_swapped() -> bool {
    let before = *SWAPPED_OUT.lock().unwrap_or_else(PoisonError::into_inner);
    before.is_none() || before != free::swapped_out()
}

/// Returns the details of these mappings, if all of them that matter have been seen as they are.
fn again(
    seen: &[Mapping],
    now: Vec<Mapping>,
    matters: impl Fn(&Mapping) -> bool,
) -> Option<Vec<Mapping>> {
    let mut known = Vec::new();
    for head in now.into_iter().filter(matters) {
        let before = &seen[seen.partition_point(|before| before.start < head.start)..];
        let mut before = before
            .first()
            .filter(|before| before.is_still(&head))?
            .clone();
        // It may have been written to since.
        before.present = before.present.max(1);
        known.push(before);
    }
    Some(known)
}

/// Reads all mappings of both halves, without the details of smaps.
pub(super) fn without_details() -> io::Result<Vec<Mapping>> {
    read(proc_files::bytes("/proc/self/maps")?.as_slice())
}

pub(super) fn read(smaps: impl Read) -> io::Result<Vec<Mapping>> {
    let mut mappings: Vec<Mapping> = Vec::new();
    let mut lines = BufReader::with_capacity(1 << 16, smaps);
    let mut line = Vec::new();
    loop {
        line.clear();
        if lines.read_until(b'\n', &mut line)? == 0 {
            return Ok(mappings);
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches('\n');
        if let Some(mapping) = head(text) {
            mappings.push(mapping);
        } else if let Some(mapping) = mappings.last_mut() {
            detail(mapping, text);
        }
    }
}

/// Reads `start-end rwxp offset major:minor inode   name`.
fn head(line: &str) -> Option<Mapping> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let start = usize::from_str_radix(start, 16).ok()?;
    let end = usize::from_str_radix(end, 16).ok()?;
    let letters = words.next()?.as_bytes();
    let mut protection = 0;
    for (letter, bit) in [
        (b'r', libc::PROT_READ),
        (b'w', libc::PROT_WRITE),
        (b'x', libc::PROT_EXEC),
    ] {
        if letters.contains(&letter) {
            protection |= bit;
        }
    }
    let offset = u64::from_str_radix(words.next()?, 16).ok()?;
    let (major, minor) = words.next()?.split_once(':')?;
    let (major, minor) = (
        u32::from_str_radix(major, 16).ok()?,
        u32::from_str_radix(minor, 16).ok()?,
    );
    let inode = words.next()?.parse().ok()?;
    Some(Mapping {
        start,
        end,
        protection,
        shared: letters.contains(&b's'),
        offset,
        device: libc::makedev(major, minor),
        inode,
        name: unescape(words.next().unwrap_or("").trim_start()),
        ..Mapping::default()
    })
}

/// Undoes the kernel's escape: it shows a line feed in a name as `\012`.
fn unescape(name: &str) -> String {
    name.replace("\\012", "\n")
}

/// Reads `Key:   value`.
fn detail(mapping: &mut Mapping, line: &str) {
    let Some((key, value)) = line.split_once(':') else {
        return;
    };
    let kilobytes = || {
        value
            .trim()
            .strip_suffix(" kB")
            .and_then(|number| number.trim().parse::<u64>().ok())
    };
    match key {
        "Rss" => mapping.present += kilobytes().unwrap_or(0) << 10,
        "Swap" => {
            mapping.swapped = kilobytes().unwrap_or(0) << 10;
            mapping.present += mapping.swapped;
        }
        "Private_Hugetlb" | "Shared_Hugetlb" => mapping.present += kilobytes().unwrap_or(0) << 10,
        "VmFlags" => {
            for letters in value.split_whitespace() {
                match letters {
                    "io" | "pf" => mapping.device_memory = true,
                    "mw" => mapping.may_write = true,
                    "lo" => mapping.locked = true,
                    "lf" => mapping.on_fault = true,
                    "um" | "uw" | "ui" => mapping.userfault = true,
                    _ => {
                        let known = vm_flags::LETTERS
                            .iter()
                            .find(|(known, _)| *known == letters);
                        mapping.vm_flags |= known.map_or(0, |(_, bit)| *bit);
                    }
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_are_known_of_what_is_still_there() {
        let at = |start, end, present, vm_flags| Mapping {
            start,
            end,
            protection: libc::PROT_READ | libc::PROT_WRITE,
            present,
            vm_flags,
            ..Mapping::default()
        };
        let heads = [at(1, 2, 0, 0), at(4, 6, 0, 0), at(8, 9, 0, 0)];
        let seen = [at(1, 2, 7, 3), at(4, 6, 0, 5), at(8, 10, 9, 1)];
        // The last one does not matter.
        let concerns = |it: &Mapping| it.start < 8;
        let known = again(&seen, heads.to_vec(), concerns).unwrap();
        assert_eq!(known, [at(1, 2, 7, 3), at(4, 6, 1, 5)]);
        assert_eq!(again(&seen, heads.to_vec(), |_| true), None);
        assert_eq!(again(&seen[1..], heads.to_vec(), concerns), None);
        let mut guarded = heads[1].clone();
        guarded.protection = libc::PROT_NONE;
        assert_eq!(again(&seen, vec![guarded], concerns), None);
    }

    #[test]
    fn mappings_are_read_with_their_details() {
        let text = "\
100000000000-100000002000 rw-s 00001000 fd:01 1234                       /tmp/a file (deleted)
Size:                  8 kB
Rss:                   4 kB
Swap:                  4 kB
VmFlags: rd wr mr mw me ms dd hg 
555555554000-555555556000 r-xp 00000000 00:00 0 
VmFlags: rd ex mr mw me io 
";
        let mappings = read(text.as_bytes()).unwrap();
        assert_eq!(mappings.len(), 2);
        let first = &mappings[0];
        assert_eq!(
            (first.start, first.end, first.offset),
            (0x1000_0000_0000, 0x1000_0000_2000, 0x1000)
        );
        assert_eq!(first.protection, libc::PROT_READ | libc::PROT_WRITE);
        assert!(first.shared && first.deleted() && first.may_write);
        assert_eq!((first.path(), first.inode), ("/tmp/a file", 1234));
        assert_eq!((first.present, first.swapped), (8192, 4096));
        assert_eq!(first.vm_flags, vm_flags::DONT_DUMP | vm_flags::HUGE_PAGE);
        assert!(mappings[1].device_memory && mappings[1].name.is_empty());
    }

    #[test]
    fn this_process_can_be_read() {
        let mappings = read(std::fs::File::open("/proc/self/smaps").unwrap()).unwrap();
        let here = mappings_of(&mappings, this_process_can_be_read as *const () as usize);
        assert_eq!(here.protection, libc::PROT_READ | libc::PROT_EXEC);
        assert!(here.present > 0 && here.inode != 0);
    }

    fn mappings_of(mappings: &[Mapping], address: usize) -> &Mapping {
        mappings
            .iter()
            .find(|mapping| mapping.start <= address && address < mapping.end)
            .unwrap()
    }
}
