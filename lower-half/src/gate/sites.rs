//! Changes code of the application's libraries that makes a trapped call often, so that it goes the short way (`arch::short`). In `mov eax, NUMBER; syscall`,
//! and at the end of the C library's `syscall`, the instruction before `syscall` becomes a jump to an island. No other instruction changes, and no change is
//! reverted.
//!
//! A site is changed only if no thread runs or writes it: code of a file, mapped privately and not writable, is changed by the application's only thread, which
//! stands in its trap. The image holds the changed page, like every page of a file mapping that a program changes.
//!
//! Rules of this place: those of `gate::trap`.

use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicUsize, Ordering};

use stillpoint_wrappers::gate::{self as region, UpperHooks};

use super::{exit, memory, short, short_switch, stand_in, table};
use crate::arch::PAGE;
use crate::arch::short::{self as way, BEFORE, Makes, SITE, STONE};
use crate::arch::springboard::SYSCALL;
use crate::arch::syscall::{failed, syscall3, syscall4};
use crate::threads::handler_stack;
use crate::threads::registry::{self, Thread};

/// The number of traps of a site that cost as much as changing it: a trap takes about 1.3 us, a change about 40.
const WORTH: u32 = 32;
/// The same before there is a second thread; afterwards no site can be changed.
const WORTH_BEFORE_THREADS: u32 = 4;
/// The count of a site that cannot be changed.
const NEVER: u32 = u32::MAX;

/// The number of sites that are counted, by a hash of their addresses; a later one replaces an earlier one.
const COUNTED: usize = 256;

struct Site {
    behind: AtomicUsize,
    traps: AtomicU32,
    /// The last call that was made there.
    made: AtomicI64,
}

static SITES: [Site; COUNTED] = [const {
    Site {
        behind: AtomicUsize::new(0),
        traps: AtomicU32::new(0),
        made: AtomicI64::new(0),
    }
}; COUNTED];

/// Islands of this launch, each a page; 0: none yet.
static ISLANDS: [AtomicUsize; 8] = [const { AtomicUsize::new(0) }; 8];
/// The number of stones in each island.
static STONES: [AtomicUsize; 8] = [const { AtomicUsize::new(0) }; 8];
const STONES_EACH: usize = PAGE / STONE;

/// Whether code of the application has been changed, in this launch or in an earlier one.
static CHANGED: AtomicBool = AtomicBool::new(false);

/// Whether an image must record that it needs the short way.
pub fn changed() -> bool {
    CHANGED.load(Ordering::Relaxed)
}

/// Notes that the image of this process has changed code.
pub fn carried_on() {
    CHANGED.store(true, Ordering::Relaxed);
}

/// Counts a trapped call; `behind` is the address behind its `syscall`.
pub fn trapped(number: i64, behind: usize) {
    let Some(site) = SITES.get((behind / SITE) % COUNTED) else {
        return;
    };
    if site.behind.swap(behind, Ordering::Relaxed) != behind {
        site.traps.store(0, Ordering::Relaxed);
    }
    let traps = site.traps.load(Ordering::Relaxed);
    if traps == NEVER {
        return;
    }
    site.made.store(number, Ordering::Relaxed);
    site.traps.store(traps + 1, Ordering::Relaxed);
    if traps + 1 >= WORTH && alone() && short_switch::is_open() {
        site.change();
    }
}

/// Changes sites before a second thread is made.
pub fn before_threads() {
    change_from(WORTH_BEFORE_THREADS);
}

/// Changes sites before a child that shares this process's memory is made. The child's calls are counted too, and while it runs no site can be changed.
pub fn before_sharing() {
    change_from(WORTH);
}

/// Changes every site with at least this many traps.
fn change_from(worth: u32) {
    unsafe extern "C" fn change(worth: usize) {
        for site in &SITES {
            let traps = site.traps.load(Ordering::Relaxed);
            if (worth as u32..NEVER).contains(&traps) {
                site.change();
            }
        }
    }
    let worth_it = |site: &Site| (worth..NEVER).contains(&site.traps.load(Ordering::Relaxed));
    if alone() && short_switch::is_open() && SITES.iter().any(worth_it) {
        // SAFETY: a thread that makes threads does not run on its stack for handlers, and `change` returns; all signals are blocked.
        unsafe { handler_stack::work(Thread::current(), change, worth as usize) };
    }
}

impl Site {
    /// Changes the code; the site is not tried again in either case.
    fn change(&self) {
        let behind = self.behind.load(Ordering::Relaxed);
        let made = self.made.load(Ordering::Relaxed);
        let changed = change(made, behind).is_some();
        self.traps.store(NEVER, Ordering::Relaxed);
        CHANGED.fetch_or(changed, Ordering::Relaxed);
    }
}

/// Whether no other thread can be running the application's code.
fn alone() -> bool {
    !exit::forked() && registry::is_one()
}

/// `made` is the number of a call that was made there: the bytes before `syscall` may be the end of another instruction, and then show another number.
fn change(made: i64, behind: usize) -> Option<()> {
    // The site, and at least the byte before it, must lie on the page that the thread has just run.
    if behind % PAGE <= SITE || !region::is_upper(behind) || of_stubs(behind) {
        return None;
    }
    // The loader may open an MPI library there (`gate::stand_in`).
    if made == libc::SYS_openat && stand_in::is_loader(behind) {
        return None;
    }
    let start = behind - SITE;
    let first = (start - BEFORE).max(start & !(PAGE - 1));
    if !is_files_code(first..behind) {
        return None;
    }
    // SAFETY: both ranges lie on a page of a file's code, which can be read, and the only thread, this one, does not unmap it.
    let (before, code) = unsafe {
        (
            core::slice::from_raw_parts(first as *const u8, start - first),
            (start as *const [u8; SITE]).read(),
        )
    };
    let makes = way::makes(before, code)?;
    let is_made = match makes {
        Makes::Number(number) => made == i64::from(number) && table::goes_short(made),
        Makes::Any => short::takes(made),
    };
    if !is_made {
        return None;
    }
    let stone = stone_near(start)?;
    let jump = way::jump(start, stone)?;
    let memory = Memory::open()?;
    memory.write(stone, &way::stone(makes, behind))?;
    set_apart(start);
    // The thread returns there by an instruction that makes the processor fetch the code again.
    memory.write(start, &jump)
}

/// Makes the page that is about to be changed a mapping of its own, by advice that has no effect on a page in memory. Otherwise a fork copies the page tables
/// of the whole mapping with the changed page: 20 us for all of libc's code.
fn set_apart(at: usize) {
    let page = at & !(PAGE - 1);
    // SAFETY: the advice changes no byte: it only tells the kernel how the page is read from its file.
    unsafe { syscall3(libc::SYS_madvise, page, PAGE, libc::MADV_RANDOM as usize) };
}

/// Whether an address is in the code of the library of stubs, which another launch may find in another file.
fn of_stubs(behind: usize) -> bool {
    stubs().is_some_and(|code| code.contains(&behind))
}

/// Returns the code of the library of stubs, or `None` if the library does not report it.
pub fn stubs() -> Option<Range<usize>> {
    // SAFETY: the gate page is mapped; the pointer is null or that of the hooks, which the upper half never frees.
    let hooks =
        unsafe { (region::page().hooks.load(Ordering::Acquire) as *const UpperHooks).as_ref() };
    let [start, end] = hooks.filter(|hooks| hooks.is_whole())?.closed;
    Some(start as usize..end as usize)
}

/// Returns a free stone that a jump at `from` can reach.
fn stone_near(from: usize) -> Option<usize> {
    for (island, stones) in ISLANDS.iter().zip(&STONES) {
        let mut start = island.load(Ordering::Relaxed);
        if start == 0 {
            start = memory::island(|at| way::jump(from, at).is_some())?;
            island.store(start, Ordering::Relaxed);
        }
        let taken = stones.load(Ordering::Relaxed);
        let stone = start + taken * STONE;
        if taken < STONES_EACH && way::jump(from, stone).is_some() {
            stones.store(taken + 1, Ordering::Relaxed);
            return Some(stone);
        }
    }
    None
}

/// The process's memory, written as by a debugger: read-only pages too.
struct Memory(Descriptor);

impl Memory {
    fn open() -> Option<Memory> {
        let path = c"/proc/self/mem".as_ptr() as usize;
        let flags = libc::O_RDWR | libc::O_CLOEXEC;
        Descriptor::open(path, flags).map(Memory)
    }

    fn write(&self, at: usize, bytes: &[u8]) -> Option<()> {
        let from = bytes.as_ptr() as usize;
        // SAFETY: the kernel reads `bytes`, and writes to an island or a site, which no thread runs now.
        let written = unsafe { syscall4(libc::SYS_pwrite64, self.0.0, from, bytes.len(), at) };
        (written == bytes.len() as isize).then_some(())
    }
}

/// An open descriptor of the lower half.
struct Descriptor(usize);

impl Descriptor {
    fn open(path: usize, flags: i32) -> Option<Descriptor> {
        let here = libc::AT_FDCWD as usize;
        // SAFETY: every caller's path is a constant that ends in NUL; the call makes a descriptor.
        let fd = unsafe { syscall4(libc::SYS_openat, here, path, flags as usize, 0) };
        (!failed(fd)).then_some(Descriptor(fd as usize))
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: the descriptor belongs to this value alone, which is being dropped.
        unsafe { syscall3(libc::SYS_close, self.0, 0, 0) };
    }
}

/// Whether all of it is code of a file, mapped privately, that cannot be written to.
fn is_files_code(range: Range<usize>) -> bool {
    let path = c"/proc/self/maps".as_ptr() as usize;
    let Some(maps) = Descriptor::open(path, libc::O_RDONLY | libc::O_CLOEXEC) else {
        return false;
    };
    let (mut line, mut length) = ([0; LINE], 0);
    let mut read = [0u8; PAGE];
    loop {
        // SAFETY: the kernel writes at most PAGE bytes, which the buffer has.
        let bytes = unsafe { syscall3(libc::SYS_read, maps.0, read.as_mut_ptr() as usize, PAGE) };
        if bytes <= 0 {
            return false;
        }
        for byte in read.iter().take(bytes as usize) {
            if *byte != b'\n' {
                // The rest of the line is not needed.
                if let Some(place) = line.get_mut(length) {
                    *place = *byte;
                    length += 1;
                }
                continue;
            }
            let told = mapping(line.get(..length).unwrap_or_default());
            length = 0;
            if let Some((mapped, code)) = told
                && mapped.contains(&range.start)
            {
                return code && range.end <= mapped.end;
            }
        }
    }
}

/// Bytes of a line of `/proc/self/maps` without its path.
const LINE: usize = 80;

/// Parses a line: the mapping, and whether it is private, unwritable code of a file: `start-end r-xp offset device inode path`.
fn mapping(line: &[u8]) -> Option<(Range<usize>, bool)> {
    let mut fields = line
        .split(|byte| *byte == b' ')
        .filter(|field| !field.is_empty());
    let range = fields.next()?;
    let dash = range.iter().position(|byte| *byte == b'-')?;
    let (start, end) = (hex(range.get(..dash)?)?, hex(range.get(dash + 1..)?)?);
    let code = fields.next()? == b"r-xp";
    let inode = fields.nth(2)?;
    Some((start..end, code && inode != b"0"))
}

fn hex(digits: &[u8]) -> Option<usize> {
    digits.iter().try_fold(0usize, |value, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(value << 4 | digit as usize)
    })
}

const _: () = assert!(SITE == way::JUMP + SYSCALL.len());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_whose_code_it_is() {
        for (line, code) in [
            (
                "55000000-5500a000 r-xp 00001000 fe:00 123    /usr/lib/libc.so.6",
                true,
            ),
            (
                "55000000-5500a000 rwxp 00001000 fe:00 123    /usr/lib/libc.so.6",
                false,
            ),
            (
                "55000000-5500a000 r-xs 00001000 fe:00 123    /usr/lib/libc.so.6",
                false,
            ),
            (
                "55000000-5500a000 r--p 00001000 fe:00 123    /usr/lib/libc.so.6",
                false,
            ),
            ("55000000-5500a000 r-xp 00000000 00:00 0 ", false),
        ] {
            let found = mapping(line.as_bytes());
            assert_eq!(found, Some((0x5500_0000..0x5500_a000, code)), "{line}");
        }
        assert_eq!(mapping(b"55000000-5500a000 r-xp 0000"), None);
        assert_eq!(mapping(b""), None);
    }

    #[inline(never)]
    fn code_of_this_file() {}

    #[test]
    fn this_programs_code_is_a_files_and_its_stack_is_not() {
        let code = code_of_this_file as *const () as usize;
        assert!(is_files_code(code..code + 1));
        let place = 0u8;
        let stack = &raw const place as usize;
        assert!(!is_files_code(stack..stack + 1));
        assert!(!is_files_code(1..2));
    }
}
