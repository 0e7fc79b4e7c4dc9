//! An open library as it describes itself, read in small pieces: the name that it gives itself, and whether it defines a name. The file's bytes may be invalid.
//!
//! No allocation and no panics: the lower half's trap handler asks too, when the application's loader opens a library.

use object::elf::gnu_hash;

use crate::Family;
use crate::library::OF_EVERY_MPI;

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_SONAME: u64 = 14;
const DT_GNU_HASH: u64 = 0x6fff_fef5;
/// The size of the file's header, and of a program header.
const HEADER: usize = 64;
const SEGMENT: usize = 56;
/// The most program headers, and entries of the dynamic section: more than any linker writes.
const MOST_SEGMENTS: u64 = 64;
const MOST_ENTRIES: u64 = 1024;
/// The most names in one chain of a hash table. A table has about as many chains as names.
const MOST_IN_CHAIN: usize = 1024;
/// The bytes that are read at once.
const PIECE: usize = 1024;

/// The longest name that is known here.
pub const LONGEST: usize = 64;

/// A library; `read` fills a buffer with the file's bytes from an offset on, and returns their number.
pub struct Opened<R> {
    read: R,
    /// Offset and number of the program headers.
    segments: (u64, u64),
    /// Offsets of the tables in the file.
    strings: u64,
    symbols: Option<u64>,
    hashes: Option<u64>,
    /// The place of its name in the strings.
    name: Option<u64>,
}

impl<R: Fn(&mut [u8], u64) -> usize> Opened<R> {
    /// Reads the beginning; `None`: the file is no library.
    pub fn new(read: R) -> Option<Opened<R>> {
        let mut head = [0; HEADER];
        if read(&mut head, 0) != HEADER || !head.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let segments = (number(&head, 32)?, u64::from(half(&head, 56)?));
        if usize::from(half(&head, 54)?) != SEGMENT || segments.1 > MOST_SEGMENTS {
            return None;
        }
        let mut library = Opened {
            read,
            segments,
            strings: 0,
            symbols: None,
            hashes: None,
            name: None,
        };
        let mut of_entries = None;
        library.each_segment(|kind, [offset, ..]| {
            if kind == PT_DYNAMIC {
                of_entries.get_or_insert(offset);
            }
        });
        let entries = of_entries?;
        let (mut strings, mut symbols, mut hashes) = (None, None, None);
        'all: for piece in 0..MOST_ENTRIES * 16 / PIECE as u64 {
            let mut bytes = [0; PIECE];
            let at = entries.checked_add(piece * PIECE as u64)?;
            let filled = (library.read)(&mut bytes, at);
            for entry in bytes.get(..filled)?.chunks_exact(16) {
                let value = number(entry, 8);
                match number(entry, 0)? {
                    0 => break 'all,
                    DT_STRTAB => strings = value,
                    DT_SYMTAB => symbols = value,
                    DT_GNU_HASH => hashes = value,
                    DT_SONAME => library.name = value,
                    _ => {}
                }
            }
            if filled < PIECE {
                break;
            }
        }
        library.strings = library.offset(strings?)?;
        library.symbols = symbols.and_then(|at| library.offset(at));
        library.hashes = hashes.and_then(|at| library.offset(at));
        Some(library)
    }

    /// Calls `look` with each program header's kind, and its offset, address and size in the file.
    fn each_segment(&self, mut look: impl FnMut(u32, [u64; 3])) {
        for index in 0..self.segments.1 {
            let mut bytes = [0; SEGMENT];
            let Some(at) = self.segments.0.checked_add(index * SEGMENT as u64) else {
                return;
            };
            if (self.read)(&mut bytes, at) != SEGMENT {
                return;
            }
            let words = [8, 16, 32].map(|at| number(&bytes, at).unwrap_or(0));
            look(word(&bytes, 0).unwrap_or(0), words);
        }
    }

    /// Returns the offset in the file of what is at an address in memory.
    fn offset(&self, address: u64) -> Option<u64> {
        let mut found = None;
        self.each_segment(|kind, [offset, start, bytes]| {
            if let Some(within) = address.checked_sub(start)
                && kind == PT_LOAD
                && within < bytes
            {
                found = offset.checked_add(within);
            }
        });
        found
    }

    /// Returns the name that the library gives itself (`DT_SONAME`); `None`: it has none, or a longer one.
    pub fn name<'a>(&self, place: &'a mut [u8; LONGEST]) -> Option<&'a [u8]> {
        self.text(self.name?, place)
    }

    fn text<'a>(&self, at: u64, place: &'a mut [u8; LONGEST]) -> Option<&'a [u8]> {
        let filled = (self.read)(place, self.strings.checked_add(at)?);
        let text = place.get(..filled)?;
        text.get(..text.iter().position(|byte| *byte == 0)?)
    }

    /// Whether the library defines a name, by its own hash table of names.
    pub fn defines(&self, name: &[u8]) -> bool {
        self.find(name).unwrap_or(false)
    }

    fn find(&self, name: &[u8]) -> Option<bool> {
        let (symbols, table) = (self.symbols?, self.hashes?);
        let mut head = [0; 16];
        if (self.read)(&mut head, table) != head.len() {
            return None;
        }
        let [buckets, first, filters] = [0, 4, 8].map(|at| u64::from(word(&head, at).unwrap_or(0)));
        let hash = gnu_hash(name);
        // The header, words of a filter, buckets, and chains of hashes.
        let of_buckets = table.checked_add(16 + 8 * filters)?;
        let bucket = u64::from(hash).checked_rem(buckets)?;
        let begin = u64::from(self.word(of_buckets.checked_add(4 * bucket)?)?);
        let chains = of_buckets.checked_add(4 * buckets)?;
        for index in (begin..).take(MOST_IN_CHAIN) {
            let there = self.word(chains.checked_add(4 * index.checked_sub(first)?)?)?;
            if there | 1 == hash | 1 && self.is_defined(symbols, index, name)? {
                return Some(true);
            }
            // The last one of a chain has this bit.
            if there & 1 != 0 {
                return Some(false);
            }
        }
        None
    }

    fn is_defined(&self, symbols: u64, index: u64, name: &[u8]) -> Option<bool> {
        const SYMBOL: usize = 24;
        let mut symbol = [0; SYMBOL];
        let at = symbols.checked_add(index * SYMBOL as u64)?;
        if (self.read)(&mut symbol, at) != SYMBOL {
            return None;
        }
        let mut place = [0; LONGEST];
        let named = self.text(u64::from(word(&symbol, 0)?), &mut place);
        Some(named == Some(name) && half(&symbol, 6)? != 0)
    }

    fn word(&self, at: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        ((self.read)(&mut bytes, at) == bytes.len()).then_some(u32::from_le_bytes(bytes))
    }

    /// Returns the MPI that the library is by the names that it defines; `Some(None)`: one that is not known here. The rule is that of a program's own
    /// libraries, but MPICH's data is asked for: the library may be any, since nothing was linked to it.
    pub fn mpi(&self) -> Option<Option<Family>> {
        if !OF_EVERY_MPI.iter().all(|name| self.defines(name)) {
            return None;
        }
        Some(if self.defines(b"ompi_mpi_comm_world") {
            Some(Family::OpenMpi)
        } else if self.defines(b"MPI_UNWEIGHTED") {
            Some(Family::Mpich)
        } else if self.defines(b"PMPI_Abi_get_version") {
            Some(Family::Standard)
        } else {
            None
        })
    }
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_le_bytes(bytes.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads bytes as a file.
    fn of(bytes: &[u8]) -> Option<Opened<impl Fn(&mut [u8], u64) -> usize>> {
        Opened::new(|into, at| {
            let from = bytes.get(at as usize..).unwrap_or_default();
            let count = from.len().min(into.len());
            into[..count].copy_from_slice(&from[..count]);
            count
        })
    }

    fn libc() -> Vec<u8> {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let libc = maps.lines().find(|line| line.contains("/libc.so")).unwrap();
        std::fs::read(&libc[libc.find('/').unwrap()..]).unwrap()
    }

    #[test]
    fn the_c_library_says_its_name_and_what_it_defines() {
        let bytes = libc();
        let libc = of(&bytes).unwrap();
        assert_eq!(libc.name(&mut [0; LONGEST]), Some(&b"libc.so.6"[..]));
        for (name, defined) in [
            ("malloc", true),
            ("pthread_create", true),
            ("PMPI_Init", false),
            ("__tls_get_addr", false),
            ("", false),
        ] {
            assert_eq!(libc.defines(name.as_bytes()), defined, "{name}");
        }
        assert_eq!(libc.mpi(), None);
    }

    #[test]
    fn a_program_has_no_name_and_no_library_is_none() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        let program = of(&own).unwrap();
        assert_eq!(program.name(&mut [0; LONGEST]), None);
        assert!(of(b"").is_none() && of(b"#!/bin/sh\n").is_none());
    }

    #[test]
    fn a_cut_or_damaged_library_is_never_read_past_its_end() {
        let whole = libc();
        for at in (0..1024).step_by(3) {
            let mut damaged = whole[..whole.len().min(1024 + at)].to_vec();
            damaged[at] ^= 0xff;
            if let Some(library) = of(&damaged) {
                let _ = (library.name(&mut [0; LONGEST]), library.mpi());
            }
        }
    }
}
