//! Captures descriptors and memory and restores them in the same process, without an application.

mod carried;
mod files;
mod held_up;
mod in_files;
mod regions;
mod sockets;

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::Mutex;

use stillpoint_ids::Epoch;
use stillpoint_image::descriptors::{DescriptorKind, Descriptors};
use stillpoint_image::format::vm_flags;
use stillpoint_image::mapped_files::MappedFiles;
use stillpoint_image::tables::RegionKind;
use stillpoint_image::{
    Base, Compression, Crew, Environment, Identity, PageRun, Reader, Region, Writer,
};
use stillpoint_refusals::{Code, Refusal};
use stillpoint_wrappers::gate::ARENA_START;

use super::mapped_files::InFiles;
use super::objects::Objects;
use super::{Restore, RestoreError, descriptors, memory, shared};
use crate::capture::access::{self, Access};
use crate::capture::contents::Contents;
use crate::capture::memory::Memory;
use crate::capture::{self, environment, mapped_files, maps, process};

/// The arena and descriptor numbers belong to the whole process, so tests run one at a time.
static PROCESS: Mutex<()> = Mutex::new(());

/// Writes an image of the arena and of some descriptors.
fn write(path: &Path, numbers: &[RawFd]) -> Descriptors {
    write_what(path, numbers, What::default())
}

/// The same for an epoch; on top of an earlier image, only these addresses are written.
fn write_upon(
    path: &Path,
    numbers: &[RawFd],
    epoch: Epoch,
    upon: Option<(&Base, &[Range<u64>])>,
) -> Descriptors {
    let what = What {
        epoch,
        upon,
        ..What::default()
    };
    write_what(path, numbers, what)
}

/// Writes an image whose list of mapped files differs from what it leaves to files.
fn write_unsound(path: &Path, said: &MappedFiles) {
    let what = What {
        said: Some(said),
        ..What::default()
    };
    write_what(path, &[], what);
}

/// Writes an image that leaves something to files.
fn write_but(path: &Path, numbers: &[RawFd], in_files: &MappedFiles) -> Descriptors {
    let what = What {
        in_files: Some(in_files),
        said: Some(in_files),
        ..What::default()
    };
    write_what(path, numbers, what)
}

/// The options of an image.
#[derive(Clone, Copy, Default)]
struct What<'a> {
    epoch: Epoch,
    upon: Option<(&'a Base, &'a [Range<u64>])>,
    in_files: Option<&'a MappedFiles>,
    said: Option<&'a MappedFiles>,
}

fn write_what(path: &Path, numbers: &[RawFd], what: What<'_>) -> Descriptors {
    let none = MappedFiles::default();
    let What { epoch, upon, .. } = what;
    let in_files = what.in_files.unwrap_or(&none);
    let said = what.said.unwrap_or(&none);
    let mut contents = Contents::default();
    let table = capture::descriptors::survey(numbers, &mut contents).unwrap();
    let mappings = maps::upper().unwrap();
    let mut writer = Writer::create(path, Compression::Lz4).unwrap();
    writer.use_crew(Crew::of(2));
    // SAFETY: no other code uses the arena while this test runs (`PROCESS`).
    unsafe {
        let memory = Memory::survey(&mappings, in_files, &mut contents).unwrap();
        let access = Access::default();
        let live = access::Memory::through(&access, &memory.loadable);
        let run = |range: &Range<usize>| PageRun {
            address: range.start as u64,
            bytes: live.bytes(range.clone()),
        };
        let mut written = memory.private.clone();
        if let Some((base, changed)) = upon {
            let starts = changed.iter().map(|range| range.end);
            let ends = changed.iter().map(|range| range.start);
            let between = std::iter::once(0).chain(starts).zip(ends.chain([u64::MAX]));
            let unchanged: Vec<_> = between.map(|(start, end)| start..end).collect();
            let regions: Vec<_> = memory.regions.iter().map(Region::range).collect();
            let (carried, renewed) = base.carry_within(&unchanged, &regions, 4);
            assert!(renewed.is_empty());
            writer.carry(carried);
            let changed = changed.iter();
            written = changed
                .map(|range| range.start as usize..range.end as usize)
                .collect();
        }
        let runs: Vec<_> = written.iter().map(run).collect();
        writer.memory(&runs).unwrap();
        contents.write(&mut writer, &live).unwrap();
        writer.regions(&memory.regions).unwrap();
    }
    let identity = Identity {
        epoch,
        size: 1,
        ..Identity::default()
    };
    writer.identity(&identity).unwrap();
    writer.environment(&environment::here()).unwrap();
    writer.threads(&[]).unwrap();
    writer.descriptors(&table).unwrap();
    writer
        .blob(
            process::KIND.name,
            process::KIND.version,
            &process::survey().unwrap().to_bytes(),
        )
        .unwrap();
    let (files, kind) = (serde_json::to_vec(said).unwrap(), mapped_files::KIND);
    writer.blob(kind.name, kind.version, &files).unwrap();
    writer.finish().unwrap();
    table
}

/// Brings memory back.
///
/// # Safety
/// Nobody may use the arena.
unsafe fn bring(reader: &Reader, in_files: &mut InFiles) -> Result<(), RestoreError> {
    // SAFETY: the caller says that nobody uses the arena, where the image's memory lies.
    unsafe {
        let loaded = memory::read(reader, None, 2)?;
        memory::map(reader, in_files, &mut Objects::default(), &loaded, 2)
    }
}

/// Moves a descriptor to a number of the test's choice.
fn at(number: RawFd, descriptor: impl Into<OwnedFd>) -> RawFd {
    let descriptor = descriptor.into();
    // SAFETY: each test chooses numbers that nothing else uses.
    assert_eq!(
        // SAFETY: the test chose a number that nothing else uses; the descriptor is open.
        unsafe { libc::dup2(descriptor.as_raw_fd(), number) },
        number
    );
    number
}

fn close(numbers: &[RawFd]) {
    for number in numbers {
        // SAFETY: the numbers are the test's own, and nothing uses them any more.
        unsafe { libc::close(*number) };
    }
}

fn restore_descriptors(path: &Path) -> Result<(), RestoreError> {
    let reader = Reader::open(path)?;
    let table = reader.descriptors();
    let missing = descriptors::missing(table);
    if !missing.is_empty() {
        return Err(RestoreError::Refused(Refusal::together(missing)));
    }
    descriptors::reserve(table)?;
    descriptors::cut_files(table)?;
    descriptors::open_all(&reader, &mut Objects::default(), None)?;
    descriptors::lock_all(table)
}

/// A `File` for a number that stays open.
fn borrow(number: RawFd) -> std::mem::ManuallyDrop<File> {
    // SAFETY: the number is open, and is not closed through this value.
    std::mem::ManuallyDrop::new(unsafe { File::from_raw_fd(number) })
}

fn owned(number: RawFd) -> OwnedFd {
    assert!(number >= 0, "{}", std::io::Error::last_os_error());
    // SAFETY: the number has just been made for the caller, and nothing else owns it.
    unsafe { OwnedFd::from_raw_fd(number) }
}

#[test]
fn another_machine_is_refused_before_anything_is_done() {
    let _alone = PROCESS.lock();
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    write(&image, &[]);
    let other = Environment {
        mpi_abi: "mpich".into(),
        ..environment::here()
    };
    let refused = Restore::check(Reader::open(&image).unwrap(), &other, 1, |_| vec![])
        .err()
        .unwrap();
    assert!(
        refused
            .to_string()
            .contains("MPI ABI openmpi, here it is mpich"),
        "{refused}"
    );
    assert!(
        Restore::check(
            Reader::open(&image).unwrap(),
            &environment::here(),
            1,
            |_| vec![]
        )
        .is_ok()
    );
}
