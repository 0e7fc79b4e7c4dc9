//! The library with the stubs in the place of the application's own libmpi.
//!
//! The application's dynamic loader searches for libmpi wherever it does natively: by name, by path, along its search paths, at the start or by `dlopen`. When
//! it opens an MPI library of the application's ABI, it gets the descriptor of the library with the stubs. So the order of symbols is the program's own, tools
//! that stand before libmpi see its calls, and the real library is not loaded here. The loader knows a file by its device and inode, so it loads the library
//! once, by whatever names it is asked for.
//!
//! Programs that need a name of the real library that the stubs lack are run in another way: the library with the stubs is preloaded, and nothing is answered
//! here ([`crate::launch`]).
//!
//! Rules of this place: runs in the trap's handler, but for [`begin`], [`save`] and [`restore`].

mod link_maps;

use core::ffi::CStr;
use core::ops::Range;
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use stillpoint_linkage::Family;
use stillpoint_linkage::opened::{LONGEST, Opened};
use stillpoint_refusals::Code;
use stillpoint_wrappers::gate;

use super::call::{Call, errno};
use super::{SavedStateError, descriptors, exit, user};
use crate::arch::frame::PC;
use crate::arch::syscall::{failed, syscall3, syscall4};

/// The code of the application's dynamic loader; empty: nothing is answered.
static LOADER: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];
/// The path of the library with the stubs, NUL-terminated.
static LIBRARY: AtomicPtr<libc::c_char> = AtomicPtr::new(core::ptr::null_mut());
/// Device and inode of that library when its contract was compared; 0: in a process that was restarted.
static CHECKED: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];
/// The same as it was loaded; 0: not yet.
static LOADED: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];
/// The application's ABI: a place in [`Family::ALL`].
static FAMILY: AtomicUsize = AtomicUsize::new(0);

fn family() -> Family {
    Family::ALL[FAMILY.load(Ordering::Relaxed).min(Family::ALL.len() - 1)]
}

fn set(pair: &[AtomicU64; 2], values: [u64; 2]) {
    pair[0].store(values[0], Ordering::Relaxed);
    pair[1].store(values[1], Ordering::Relaxed);
}

fn get(pair: &[AtomicU64; 2]) -> [u64; 2] {
    pair.each_ref().map(|it| it.load(Ordering::Relaxed))
}

/// Notes device and inode of the library whose contract was compared.
pub fn checked(device: u64, inode: u64) {
    set(&CHECKED, [device, inode]);
}

/// Begins: the library stands in for libmpi whenever this loader opens it.
pub fn begin(loader: &Range<usize>, family: Family) {
    let place = Family::ALL.iter().position(|it| *it == family);
    FAMILY.store(place.unwrap_or(0), Ordering::Relaxed);
    LOADER[0].store(loader.start, Ordering::Relaxed);
    LOADER[1].store(loader.end, Ordering::Relaxed);
}

/// Notes the path of the library.
pub fn set_library(path: &'static CStr) {
    LIBRARY.store(path.as_ptr().cast_mut(), Ordering::Relaxed);
}

/// Whether code at this address is the loader's, and it is to be answered.
pub fn is_loader(address: usize) -> bool {
    loader().contains(&address)
}

fn loader() -> Range<usize> {
    let [start, end] = LOADER.each_ref().map(|it| it.load(Ordering::Relaxed));
    start..end
}

/// Returns what an image must hold.
pub fn save() -> Vec<u8> {
    let loader = loader();
    let [device, inode] = get(&LOADED);
    let [start, end] = [loader.start as u64, loader.end as u64];
    [start, end, device, inode, word_of(family())]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect()
}

/// Takes over the state from [`save`] in another launch.
pub fn restore(saved: &[u8]) -> Result<(), SavedStateError> {
    let words = super::words(saved, "the stand-in", 5)?;
    let family = Family::ALL.into_iter().find(|it| word_of(*it) == words[4]);
    let family = family.ok_or(SavedStateError::Value {
        part: "the stand-in",
    })?;
    set(&LOADED, [words[2], words[3]]);
    begin(&(words[0] as usize..words[1] as usize), family);
    Ok(())
}

/// Returns the name of a family's binary interface as a word of an image.
fn word_of(family: Family) -> u64 {
    let mut bytes = [0; 8];
    let word = family.word().bytes();
    bytes.iter_mut().zip(word).for_each(|(to, from)| *to = from);
    u64::from_le_bytes(bytes)
}

/// Answers the loader's `open` of a file that may be an MPI library; `None`: it is none by its name, or another caller opens it. The path is the argument with
/// this number.
pub fn on_open(call: &Call, argument: usize) -> Option<isize> {
    if !is_loader(call.frame().register(PC)) {
        return None;
    }
    let path = user::text(call.argument(argument))?;
    if !may_be_mpi(path) || path.starts_with(b"/proc/") {
        return None;
    }
    let library = LIBRARY.load(Ordering::Relaxed);
    if library.is_null() {
        return None;
    }
    // Opening a library does not block.
    let opened = call.make();
    let (own, loaded) = (family(), get(&LOADED) != [0; 2]);
    if failed(opened) {
        // Natively, the loader knows the library by the name that it gives itself, however it was loaded first.
        let known = loaded && stands_for(own, file_name(path));
        return Some(match known {
            true => instead(opened, library, file_name(path)),
            false => opened,
        });
    }
    let library_there = opened_library(opened);
    let mut name = [0; LONGEST];
    let name = library_there.as_ref().and_then(|it| it.name(&mut name));
    let name = name.unwrap_or_default();
    if stands_for(own, name) {
        return Some(instead(opened, library, name));
    }
    let mut other = Family::ALL.into_iter().find(|it| stands_for(*it, name));
    let mut is_mpi = other.is_some() && is_mpi_itself(name);
    if other.is_none()
        && is_mpi_itself(file_name(path))
        && let Some(mpi) = library_there.as_ref().and_then(Opened::mpi)
    {
        // An MPI under a name of its maker's own.
        if mpi == Some(own) {
            return Some(instead(opened, library, b"libmpi"));
        }
        (other, is_mpi) = (mpi, true);
    }
    if is_mpi && !loaded && !exit::forked() {
        refuse(other, own, path);
    }
    Some(descriptors::noted(opened))
}

/// Reads the beginning of an open library.
fn opened_library(fd: isize) -> Option<Opened<impl Fn(&mut [u8], u64) -> usize>> {
    Opened::new(move |into: &mut [u8], at: u64| {
        let place = into.as_mut_ptr() as usize;
        let length = into.len();
        // SAFETY: the kernel writes at most `length` bytes there.
        let read = unsafe { syscall4(libc::SYS_pread64, fd as usize, place, length, at as usize) };
        (read.max(0) as usize).min(length)
    })
}

/// Whether the stubs of a family stand in the place of the library of that name.
fn stands_for(family: Family, name: &[u8]) -> bool {
    family.libraries().iter().any(|it| it.as_bytes() == name)
}

/// Whether a library has MPI's functions, and is no part below it.
fn is_mpi_itself(name: &[u8]) -> bool {
    name.starts_with(b"libmpi")
}

/// Returns the last part of a path.
fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// Whether a path may lead to an MPI library. Most do not, and are not opened here.
fn may_be_mpi(path: &[u8]) -> bool {
    let name = file_name(path);
    is_mpi_itself(name) || name.starts_with(b"libopen-")
}

/// Opens the library in the place of one with that name; `opened` is that one's descriptor, or an error.
fn instead(opened: isize, library: *const libc::c_char, name: &[u8]) -> isize {
    let here = libc::AT_FDCWD as usize;
    let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as usize;
    // SAFETY: the path ends in NUL and lives as long as the process; the call makes a descriptor.
    let stubs = unsafe { syscall4(libc::SYS_openat, here, library as usize, flags, 0) };
    let close = |fd: isize| {
        if !failed(fd) {
            // SAFETY: the descriptor was opened for this call.
            unsafe { syscall3(libc::SYS_close, fd as usize, 0, 0) };
        }
    };
    let found = if failed(stubs) { None } else { id(stubs) };
    // The loader would load another file a second time, and another build's contract has not been compared.
    let (before, checked) = (get(&LOADED), get(&CHECKED));
    let known = [before, checked].into_iter().find(|it| *it != [0; 2]);
    let is_known = |found: &[u64; 2]| {
        known.is_none_or(|known| known == *found)
            // After a restart, another installation's file stands for the one that is loaded, and the loader need only know it.
            || checked == [0; 2] && link_maps::know(loader(), before, *found)
    };
    if let Some(found) = found.filter(is_known) {
        close(opened);
        set(&LOADED, found);
        return descriptors::noted(stubs);
    }
    close(stubs);
    if is_mpi_itself(name) {
        close(opened);
        return errno(libc::ELIBACC);
    }
    // A part below MPI does no harm beside the stubs, whose names come first.
    match failed(opened) {
        true => opened,
        false => descriptors::noted(opened),
    }
}

/// Returns the device and inode of an open file.
fn id(fd: isize) -> Option<[u64; 2]> {
    // SAFETY: `fstat` fills the structure, which lives on this stack.
    unsafe {
        let mut about: libc::stat = core::mem::zeroed();
        let place = (&raw mut about) as usize;
        let result = syscall3(libc::SYS_fstat, fd as usize, place, 0);
        (!failed(result)).then_some([about.st_dev, about.st_ino])
    }
}

/// Ends the process: the program loads an MPI whose calls nothing here would answer.
fn refuse(other: Option<Family>, own: Family, path: &[u8]) -> ! {
    /// The exit status of a program that was found, but cannot be run.
    const NOT_EXECUTABLE: usize = 126;
    /// The lead of rank 0 in reporting an error that all ranks have: its launcher then ends the others.
    static HEAD_START: libc::timespec = libc::timespec {
        tv_sec: 10,
        tv_nsec: 0,
    };
    // SAFETY: the gate page is mapped as long as the process lives.
    let first = unsafe { gate::page() }.rank.load(Ordering::Relaxed) <= 0;
    let parts = [
        b"stillpoint: this program has loaded " as &[u8],
        other
            .map_or("an MPI that is not known here", Family::shown)
            .as_bytes(),
        b" (",
        path,
        b"), but it was launched for ",
        own.shown().as_bytes(),
        b": use what is built for ",
        own.shown().as_bytes(),
        b" [",
        Code::OtherMpi.name().as_bytes(),
        b"]\n",
    ];
    let parts = parts.map(|part| libc::iovec {
        iov_base: part.as_ptr().cast_mut().cast(),
        iov_len: part.len(),
    });
    // SAFETY: the pieces live until the call returns; the process ends, and no code of either half must run any more.
    unsafe {
        if !first {
            syscall3(libc::SYS_nanosleep, (&raw const HEAD_START) as usize, 0, 0);
        }
        syscall3(libc::SYS_writev, 2, parts.as_ptr() as usize, parts.len());
        loop {
            syscall3(libc::SYS_exit_group, NOT_EXECUTABLE, 0, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_mpi_libraries_are_looked_at() {
        for path in [
            &b"/usr/lib/libmpi.so.40"[..],
            b"libmpich.so.12",
            b"/a/libopen-pal.so.40",
            b"libmpi_mpifh.so.40",
        ] {
            assert!(may_be_mpi(path));
        }
        for path in [&b"/usr/lib/libmpi/libc.so.6"[..], b"libm.so.6", b"", b"/"] {
            assert!(!may_be_mpi(path));
        }
    }

    #[test]
    fn programs_are_linked_to_the_first_library_of_their_family() {
        use stillpoint_wrappers::{abi, mpich, openmpi};
        let described = [openmpi::LIBRARY, mpich::LIBRARY, abi::LIBRARY];
        assert_eq!(Family::ALL.map(|it| it.libraries()[0]), described);
    }

    #[test]
    fn no_library_belongs_to_two_families() {
        let all = Family::ALL.iter().flat_map(|it| it.libraries());
        let mut all: Vec<&str> = all.copied().collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
