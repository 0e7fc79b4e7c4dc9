//! A vDSO of our own for the upper half, at the same address in every launch.
//!
//! The kernel's vDSO moves from launch to launch and differs between kernels, so the upper half must not bind to it. Ours is a small ELF image whose functions
//! jump through words of the gate region, which every launch fills with the kernel's functions. It has exactly one loadable segment, at virtual address 0, with
//! the dynamic section inside: otherwise glibc computes a wrong base and silently does without it.
//!
//! ```text
//!   0x000  ELF header, two program headers (PT_LOAD, PT_DYNAMIC)
//!          dynamic section, hash table, symbols, versions, version definitions, strings
//!          code: for each function `mov r11, slot; jmp [r11]`
//! ```
//!
//! Clocks of a process or thread with a given id have negative numbers. For those, `clock_gettime` makes a system call of its own, which is trapped if the
//! application's ids are not the kernel's; a call that the kernel's function makes is not trapped.

use std::ffi::CStr;
use std::io;

use crate::arch::layout::{SLOTS, Slot, VDSO, slot};
use crate::arch::springboard::{self, Piece};
use crate::arch::syscall::failed;
use crate::arch::{MACHINE, PAGE};
use crate::gate::memory;

const VERSION: &str = "LINUX_2.6";
const NAME: &str = "linux-vdso.so.1";
const FUNCTIONS: [(&CStr, Slot, Piece); 4] = [
    (
        c"__vdso_clock_gettime",
        Slot::ClockGettime,
        Piece::ClockGettime,
    ),
    (
        c"__vdso_gettimeofday",
        Slot::Gettimeofday,
        Piece::Gettimeofday,
    ),
    (c"__vdso_time", Slot::Time, Piece::Time),
    (c"__vdso_getcpu", Slot::Getcpu, Piece::Getcpu),
];

/// The hash of the System V ABI.
fn hash(name: &[u8]) -> u32 {
    name.iter().fold(0, |hash: u32, byte| {
        let sum = (hash << 4).wrapping_add(u32::from(*byte));
        let top = sum & 0xf000_0000;
        (sum ^ (top >> 24)) & !top
    })
}

/// An ELF image being put together.
#[derive(Default)]
struct Image(Vec<u8>);

impl Image {
    fn align(&mut self, to: usize) -> usize {
        self.0.resize(self.0.len().next_multiple_of(to), 0);
        self.0.len()
    }

    fn half(&mut self, value: u16) {
        self.0.extend(value.to_le_bytes());
    }

    fn word(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    fn long(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }
}

/// The strings, and the offset of each.
struct Strings {
    bytes: Vec<u8>,
}

impl Strings {
    fn add(&mut self, string: &[u8]) -> u32 {
        let at = self.bytes.len() as u32;
        self.bytes.extend(string);
        self.bytes.push(0);
        at
    }
}

/// Builds the image; addresses in it count from its start.
fn image() -> Vec<u8> {
    let mut strings = Strings { bytes: vec![0] };
    let soname = strings.add(NAME.as_bytes());
    let version = strings.add(VERSION.as_bytes());
    let names: Vec<u32> = FUNCTIONS
        .iter()
        .map(|(name, ..)| strings.add(name.to_bytes()))
        .collect();
    let places = ImageOffsets::of(strings.bytes.len());

    let mut image = Image::default();
    image.heads(&places);
    image.dynamic(&places, soname, strings.bytes.len());
    debug_assert_eq!(image.0.len(), places.hashes);
    image.hashes();
    image.symbols(&places, &names);
    image.versions(soname, version);
    image.0.extend(&strings.bytes);
    image.code();
    image.0
}

/// Symbols in the table: the functions, and the first, which is none.
const SYMBOLS: usize = FUNCTIONS.len() + 1;
const HEADERS: usize = 64 + 2 * 56;
const DYNAMIC_ENTRIES: usize = 10;
const CODE_BYTES: usize = 64;

/// The offsets of the image's parts.
struct ImageOffsets {
    hashes: usize,
    table: usize,
    versions: usize,
    definitions: usize,
    text: usize,
    code: usize,
    end: usize,
}

impl ImageOffsets {
    fn of(text_bytes: usize) -> ImageOffsets {
        let hashes = HEADERS + 16 * DYNAMIC_ENTRIES;
        let table = (hashes + 4 * (2 + 1 + SYMBOLS)).next_multiple_of(8);
        let versions = table + 24 * SYMBOLS;
        let definitions = (versions + 2 * SYMBOLS).next_multiple_of(8);
        let text = definitions + 2 * (20 + 8);
        let code = (text + text_bytes).next_multiple_of(CODE_BYTES);
        ImageOffsets {
            hashes,
            table,
            versions,
            definitions,
            text,
            code,
            end: code + CODE_BYTES * FUNCTIONS.len(),
        }
    }
}

impl Image {
    /// Writes the file's header and those of its two segments.
    fn heads(&mut self, places: &ImageOffsets) {
        self.0.extend(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
        self.half(3); // ET_DYN
        self.half(MACHINE);
        self.word(1);
        self.long(0); // no entry point
        self.long(64); // program headers
        self.long(0); // no section headers
        self.word(0);
        for value in [64, 56, 2, 64, 0, 0] {
            self.half(value);
        }
        // PT_LOAD, readable and executable; PT_DYNAMIC, readable.
        for (kind, flags, at, bytes, alignment) in [
            (1, 5, 0, places.end, PAGE),
            (2, 4, HEADERS, 16 * DYNAMIC_ENTRIES, 8),
        ] {
            self.word(kind);
            self.word(flags);
            for value in [at, at, at, bytes, bytes, alignment] {
                self.long(value as u64);
            }
        }
    }

    fn dynamic(&mut self, places: &ImageOffsets, soname: u32, text_bytes: usize) {
        let entries: [(u64, u64); DYNAMIC_ENTRIES] = [
            (14, u64::from(soname)),                  // DT_SONAME
            (4, places.hashes as u64),                // DT_HASH
            (5, places.text as u64),                  // DT_STRTAB
            (6, places.table as u64),                 // DT_SYMTAB
            (10, text_bytes as u64),                  // DT_STRSZ
            (11, 24),                                 // DT_SYMENT
            (0x6fff_fff0, places.versions as u64),    // DT_VERSYM
            (0x6fff_fffc, places.definitions as u64), // DT_VERDEF
            (0x6fff_fffd, 2),                         // DT_VERDEFNUM
            (0, 0),
        ];
        for (tag, value) in entries {
            self.long(tag);
            self.long(value);
        }
    }

    /// Writes the hash table: one bucket, with every symbol in its chain.
    fn hashes(&mut self) {
        self.word(1);
        self.word(SYMBOLS as u32);
        self.word(1);
        for index in 0..SYMBOLS as u32 {
            let last = index as usize == SYMBOLS - 1;
            self.word(if index == 0 || last { 0 } else { index + 1 });
        }
        self.align(8);
    }

    fn symbols(&mut self, places: &ImageOffsets, names: &[u32]) {
        self.0.resize(self.0.len() + 24, 0);
        for (index, name) in names.iter().enumerate() {
            self.word(*name);
            self.0.extend([0x12, 0]); // a global function
            self.half(1); // defined (in whatever section)
            self.long((places.code + CODE_BYTES * index) as u64);
            self.long(CODE_BYTES as u64);
        }
    }

    /// Writes the version of each symbol, and the versions' names.
    fn versions(&mut self, soname: u32, version: u32) {
        self.half(0);
        for _ in FUNCTIONS {
            self.half(2);
        }
        self.align(8);
        for (index, flags, name, string, next) in
            [(1, 1, NAME, soname, 28), (2, 0, VERSION, version, 0)]
        {
            self.half(1);
            self.half(flags); // 1: VER_FLG_BASE
            self.half(index);
            self.half(1);
            self.word(hash(name.as_bytes()));
            self.word(20);
            self.word(next);
            self.word(string);
            self.word(0);
        }
    }

    fn code(&mut self) {
        self.align(CODE_BYTES);
        for (_, word, piece) in FUNCTIONS {
            self.0.extend(springboard::way_in(slot(word), piece));
            self.align(CODE_BYTES);
        }
    }
}

/// Maps the image; returns its address, for AT_SYSINFO_EHDR.
pub fn map() -> io::Result<usize> {
    let image = image();
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    let mapped = memory::mmap(VDSO, PAGE, protection, flags as usize, usize::MAX, 0);
    if failed(mapped) {
        return Err(io::Error::from_raw_os_error(-mapped as i32));
    }
    // SAFETY: the page has just been mapped for this, writable; at most PAGE bytes are copied, and nothing runs there before its protection is changed.
    let result = unsafe {
        std::ptr::copy_nonoverlapping(image.as_ptr(), VDSO as *mut u8, image.len().min(PAGE));
        libc::mprotect(VDSO as *mut _, PAGE, libc::PROT_READ | libc::PROT_EXEC)
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(VDSO)
}

/// Points the image's functions at this kernel's, or at plain system calls if it has none.
pub fn fill_slots() {
    // SAFETY: the name ends in NUL; RTLD_NOLOAD loads nothing, so no library's code runs.
    let library = unsafe {
        libc::dlopen(
            c"linux-vdso.so.1".as_ptr(),
            libc::RTLD_LAZY | libc::RTLD_NOLOAD,
        )
    };
    for (name, word, piece) in FUNCTIONS {
        let found = if library.is_null() {
            std::ptr::null_mut()
        } else {
            // SAFETY: the name ends in NUL, and the library is open.
            unsafe { libc::dlsym(library, name.as_ptr()) }
        };
        let address = if found.is_null() {
            piece.address()
        } else {
            found as usize
        };
        // SAFETY: the gate region is mapped and writable while it is being filled, and each word lies in it.
        unsafe { (SLOTS as *mut u64).add(word as usize).write(address as u64) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_fits_one_page_and_has_one_segment_at_zero() {
        let image = image();
        assert!(image.len() < PAGE);
        let header = crate::ground::elf::header(&image).unwrap();
        let segments: Vec<_> = (0..2)
            .map(|index| crate::ground::elf::segment(&image, &header, index).unwrap())
            .collect();
        assert_eq!((segments[0].p_type, segments[0].p_vaddr), (1, 0));
        assert!(segments[1].p_vaddr + segments[1].p_memsz <= segments[0].p_memsz);
    }

    #[test]
    fn the_hash_is_the_abis() {
        assert_eq!(hash(b"LINUX_2.6"), 0x3ae_75f6);
    }
}
