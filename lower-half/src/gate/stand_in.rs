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

mod soname;

use core::ffi::CStr;
use core::ops::Range;
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use stillpoint_linkage::Family;
use stillpoint_refusals::Code;
use stillpoint_wrappers::{abi, gate, mpich, openmpi};

use super::call::{Call, errno};
use super::{SavedStateError, descriptors, user};
use crate::arch::frame::PC;
use crate::arch::syscall::{failed, syscall3, syscall4};

/// The code of the application's dynamic loader; empty: nothing is answered.
static LOADER: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];
/// The path of the library with the stubs, NUL-terminated.
static LIBRARY: AtomicPtr<libc::c_char> = AtomicPtr::new(core::ptr::null_mut());
/// Device and inode of that library as it was loaded; 0: not yet.
static LOADED: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];
/// The application's ABI: a place in [`Family::ALL`].
static FAMILY: AtomicUsize = AtomicUsize::new(0);

/// Returns the libraries of a family in whose place the stubs stand. The first one is MPI itself.
const fn libraries(family: Family) -> &'static [&'static str] {
    match family {
        Family::OpenMpi => &openmpi::LIBRARIES,
        Family::Mpich => &mpich::LIBRARIES,
        Family::Standard => &abi::LIBRARIES,
    }
}

fn family() -> Family {
    Family::ALL[FAMILY.load(Ordering::Relaxed).min(Family::ALL.len() - 1)]
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
    let [start, end] = LOADER.each_ref().map(|it| it.load(Ordering::Relaxed));
    (start..end).contains(&address)
}

/// Returns what an image must hold.
pub fn save() -> Vec<u8> {
    let [start, end] = LOADER
        .each_ref()
        .map(|it| it.load(Ordering::Relaxed) as u64);
    let [device, inode] = LOADED.each_ref().map(|it| it.load(Ordering::Relaxed));
    let family = FAMILY.load(Ordering::Relaxed) as u64;
    [start, end, device, inode, family]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect()
}

/// Takes over the state from [`save`] in another launch.
pub fn restore(saved: &[u8]) -> Result<(), SavedStateError> {
    let words = super::words(saved, "the stand-in", 5)?;
    let family = Family::ALL.get(words[4] as usize);
    let family = *family.ok_or(SavedStateError::Value {
        part: "the stand-in",
    })?;
    LOADED[0].store(words[2], Ordering::Relaxed);
    LOADED[1].store(words[3], Ordering::Relaxed);
    begin(&(words[0] as usize..words[1] as usize), family);
    Ok(())
}

/// Answers the loader's `open` of a file that may be an MPI library; `None`: it is none by its name, or another caller opens it. The path is the argument with
/// this number.
pub fn on_open(call: &Call, argument: usize) -> Option<isize> {
    if !is_loader(call.frame().register(PC)) {
        return None;
    }
    let path = user::text(call.argument(argument))?;
    if !may_be_mpi(path) {
        return None;
    }
    let library = LIBRARY.load(Ordering::Relaxed);
    if library.is_null() {
        return None;
    }
    // Opening a library does not block.
    let opened = call.make();
    if failed(opened) {
        return Some(opened);
    }
    let mut name = [0; soname::LONGEST];
    let name = soname::of(opened, &mut name).unwrap_or_default();
    let is = |family: &Family| libraries(*family).iter().any(|it| it.as_bytes() == name);
    let own = family();
    if is(&own) {
        return Some(instead(opened, library, name));
    }
    if let Some(other) = Family::ALL.iter().find(|it| is(it)) {
        refuse(*other, own, path);
    }
    Some(descriptors::noted(opened))
}

/// Whether a path may lead to an MPI library. Most do not, and are not opened here.
fn may_be_mpi(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    [&b"libmpi"[..], b"libopen-"]
        .iter()
        .any(|beginning| name.starts_with(beginning))
}

/// Opens the library in the place of an opened one with that name.
fn instead(opened: isize, library: *const libc::c_char, name: &[u8]) -> isize {
    let here = libc::AT_FDCWD as usize;
    let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as usize;
    // SAFETY: the path ends in NUL and lives as long as the process; the call makes a descriptor.
    let stubs = unsafe { syscall4(libc::SYS_openat, here, library as usize, flags, 0) };
    if failed(stubs) {
        // SAFETY: the descriptor was opened for this call.
        unsafe { syscall3(libc::SYS_close, opened as usize, 0, 0) };
        return stubs;
    }
    let (found, known) = (
        id(stubs),
        LOADED.each_ref().map(|it| it.load(Ordering::Relaxed)),
    );
    // The loader would load another file a second time.
    let other = known != [0; 2] && found != Some(known);
    let (kept, closed) = if other {
        (opened, stubs)
    } else {
        (stubs, opened)
    };
    // SAFETY: the descriptor was opened for this call.
    unsafe { syscall3(libc::SYS_close, closed as usize, 0, 0) };
    if other && libraries(family())[0].as_bytes() == name {
        // SAFETY: as above.
        unsafe { syscall3(libc::SYS_close, kept as usize, 0, 0) };
        return errno(libc::ELIBACC);
    }
    if !other && let Some([device, inode]) = found {
        LOADED[0].store(device, Ordering::Relaxed);
        LOADED[1].store(inode, Ordering::Relaxed);
    }
    descriptors::noted(kept)
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
fn refuse(other: Family, own: Family, path: &[u8]) -> ! {
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
        b"stillpoint: this program loads " as &[u8],
        other.shown().as_bytes(),
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
    fn no_library_belongs_to_two_families() {
        let all = Family::ALL.iter().flat_map(|it| libraries(*it));
        let mut all: Vec<&str> = all.copied().collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
