//! What is captured in this process is restored in this process: descriptors and memory, without an
//! application.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::Mutex;

use stillpoint_image::descriptors::{DescriptorKind, Descriptors};
use stillpoint_image::format::vm_flags;
use stillpoint_image::tables::RegionKind;
use stillpoint_image::{Compression, Environment, Identity, Reader, Writer};
use stillpoint_wrappers::gate::ARENA_START;

use super::objects::Objects;
use super::{Restore, RestoreError, descriptors, memory, shared};
use crate::capture::contents::{Contents, run};
use crate::capture::memory::Memory;
use crate::capture::{self, environment, maps, process};

/// The arena and descriptor numbers are the process's: one test at a time.
static PROCESS: Mutex<()> = Mutex::new(());

/// Writes an image of the arena and of some descriptors.
fn write(path: &Path, numbers: &[RawFd]) -> Descriptors {
    let mut contents = Contents::default();
    let table = capture::descriptors::survey(numbers, &mut contents).unwrap();
    let mappings = maps::upper().unwrap();
    let mut writer = Writer::create(path, Compression::Lz4).unwrap();
    writer.use_threads(2);
    // SAFETY: nobody but this test uses the arena.
    unsafe {
        let memory = Memory::survey(&mappings, &mut contents).unwrap();
        let runs: Vec<_> = memory
            .private
            .iter()
            .map(|range| run(range.start as u64, range.clone()))
            .collect();
        writer.memory(&runs).unwrap();
        contents.write(&mut writer).unwrap();
        writer.regions(&memory.regions).unwrap();
    }
    writer.identity(&Identity::default()).unwrap();
    writer.environment(&environment::here()).unwrap();
    writer.threads(&[]).unwrap();
    writer.descriptors(&table).unwrap();
    writer
        .blob(
            process::BLOB,
            process::VERSION,
            &process::survey().unwrap().to_bytes(),
        )
        .unwrap();
    writer.finish().unwrap();
    table
}

/// Moves a descriptor to a number of the test's choice.
fn at(number: RawFd, descriptor: impl Into<OwnedFd>) -> RawFd {
    let descriptor = descriptor.into();
    // SAFETY: tests choose numbers that nothing else uses.
    assert_eq!(
        unsafe { libc::dup2(descriptor.as_raw_fd(), number) },
        number
    );
    number
}

fn close(numbers: &[RawFd]) {
    for number in numbers {
        // SAFETY: the test's own numbers.
        unsafe { libc::close(*number) };
    }
}

fn restore_descriptors(path: &Path) -> Result<(), RestoreError> {
    let reader = Reader::open(path)?;
    let table = reader.descriptors();
    assert_eq!(descriptors::missing(table), Vec::<String>::new());
    descriptors::reserve(table)?;
    descriptors::cut_files(table)?;
    descriptors::open_all(&reader, &mut Objects::default())
}

/// A `File` for a number that stays open.
fn borrow(number: RawFd) -> std::mem::ManuallyDrop<File> {
    // SAFETY: the number is open, and is not closed through this.
    std::mem::ManuallyDrop::new(unsafe { File::from_raw_fd(number) })
}

fn owned(number: RawFd) -> OwnedFd {
    assert!(number >= 0, "{}", std::io::Error::last_os_error());
    // SAFETY: just made for us.
    unsafe { OwnedFd::from_raw_fd(number) }
}

#[test]
fn files_come_back_with_offset_flags_length_and_duplicates() {
    let _alone = PROCESS.lock();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out");
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .unwrap();
    file.write_all(b"before\n").unwrap();
    let mut read = File::open(&path).unwrap();
    read.seek(SeekFrom::Start(3)).unwrap();
    // SAFETY: fcntl with numbers.
    unsafe {
        libc::fcntl(
            file.as_raw_fd(),
            libc::F_SETFL,
            libc::O_APPEND | libc::O_NONBLOCK,
        )
    };
    let numbers = [
        at(301, file.try_clone().unwrap()),
        at(302, file),
        at(303, read),
    ];
    // SAFETY: as above.
    unsafe { libc::fcntl(303, libc::F_SETFD, libc::FD_CLOEXEC) };
    let image = directory.path().join("image");
    let table = write(&image, &numbers);
    assert_eq!(table.descriptions.len(), 2);
    close(&numbers);
    std::fs::write(&path, "before\nafter, to be cut off\n").unwrap();

    restore_descriptors(&image).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"before\n");
    borrow(302).write_all(b"again\n").unwrap();
    assert_eq!(borrow(301).stream_position().unwrap(), 13);
    let mut rest = String::new();
    borrow(303).read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "ore\nagain\n");
    // SAFETY: as above.
    unsafe {
        assert_eq!(libc::fcntl(301, libc::F_GETFD), 0);
        assert_eq!(libc::fcntl(303, libc::F_GETFD), libc::FD_CLOEXEC);
        let flags = libc::O_APPEND | libc::O_NONBLOCK | libc::O_WRONLY;
        assert_eq!(
            libc::fcntl(301, libc::F_GETFL) & (flags | libc::O_ACCMODE),
            flags
        );
    }
    close(&numbers);
}

#[test]
fn a_file_without_a_name_travels_in_the_image() {
    let _alone = PROCESS.lock();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("scratch");
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(true)
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    file.write_all(b"scratch").unwrap();
    file.seek(SeekFrom::Start(10 << 20)).unwrap();
    file.write_all(b"far away").unwrap();
    file.seek(SeekFrom::Start(2)).unwrap();
    std::fs::remove_file(&path).unwrap();
    let name = CString::new("note").unwrap();
    // SAFETY: the name is a C string.
    let mut memory = File::from(owned(unsafe {
        libc::memfd_create(name.as_ptr(), libc::MFD_ALLOW_SEALING)
    }));
    memory.write_all(b"in memory").unwrap();
    // SAFETY: fcntl with numbers.
    unsafe { libc::fcntl(memory.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_SHRINK) };
    let numbers = [at(311, file), at(312, memory)];
    let image = directory.path().join("image");
    write(&image, &numbers);
    assert!(
        std::fs::metadata(&image).unwrap().len() < 1 << 16,
        "holes take no room"
    );
    close(&numbers);

    restore_descriptors(&image).unwrap();
    let mut bytes = Vec::new();
    borrow(311).read_to_end(&mut bytes).unwrap();
    assert_eq!((bytes.len(), &bytes[..5]), ((10 << 20) + 6, &b"ratch"[..]));
    assert!(bytes.ends_with(b"far away"));
    assert_eq!(borrow(312).stream_position().unwrap(), 9);
    borrow(312).seek(SeekFrom::Start(0)).unwrap();
    let mut text = String::new();
    borrow(312).read_to_string(&mut text).unwrap();
    assert_eq!(text, "in memory");
    // SAFETY: fcntl with numbers.
    assert_eq!(
        unsafe { libc::fcntl(312, libc::F_GET_SEALS) },
        libc::F_SEAL_SHRINK
    );
    close(&numbers);
}

#[test]
fn pipes_counters_timers_and_epoll_sets_come_back() {
    let _alone = PROCESS.lock();
    let directory = tempfile::tempdir().unwrap();
    let mut ends = [0; 2];
    let time = |seconds| libc::timespec {
        tv_sec: seconds,
        tv_nsec: 0,
    };
    // SAFETY: descriptors are made, from values on this stack.
    let numbers = unsafe {
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
        let reader = at(321, owned(ends[0]));
        let writer = at(322, owned(ends[1]));
        let counter = at(323, owned(libc::eventfd(7, libc::EFD_NONBLOCK)));
        let timer = at(324, owned(libc::timerfd_create(libc::CLOCK_MONOTONIC, 0)));
        let setting = libc::itimerspec {
            it_interval: time(5),
            it_value: time(1000),
        };
        assert_eq!(
            libc::timerfd_settime(timer, 0, &raw const setting, std::ptr::null_mut()),
            0
        );
        let mask = 1u64 << 11;
        let signals = at(
            325,
            owned(libc::syscall(libc::SYS_signalfd4, -1, &raw const mask, 8, 0) as i32),
        );
        let set = at(326, owned(libc::epoll_create1(0)));
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: 0x1234_5678_9abc,
        };
        assert_eq!(
            libc::epoll_ctl(set, libc::EPOLL_CTL_ADD, reader, &raw mut event),
            0
        );
        [reader, writer, counter, timer, signals, set]
    };
    borrow(322).write_all(b"on its way").unwrap();
    let image = directory.path().join("image");
    let before = write(&image, &numbers);
    let mut bytes = [0; 4];
    borrow(321).read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"on i", "looking into a pipe takes nothing out");
    close(&numbers);

    restore_descriptors(&image).unwrap();
    let after = capture::descriptors::survey(&numbers, &mut Contents::default()).unwrap();
    for (one, other) in before.descriptions.iter().zip(&after.descriptions) {
        match (&one.kind, &other.kind) {
            (DescriptorKind::Pipe { .. }, DescriptorKind::Pipe { .. }) => {}
            (
                DescriptorKind::TimerFd {
                    value_nanoseconds: before,
                    interval_nanoseconds: 5_000_000_000,
                    ..
                },
                DescriptorKind::TimerFd {
                    value_nanoseconds: after,
                    interval_nanoseconds: 5_000_000_000,
                    ..
                },
            ) => assert!(before >= after && before - after < 60_000_000_000),
            (one, other) => assert_eq!(one, other),
        }
        assert_eq!(one.flags, other.flags, "{:?}", one.kind);
    }
    let mut text = [0; 10];
    borrow(321).read_exact(&mut text).unwrap();
    assert_eq!(&text, b"on its way");
    borrow(322).write_all(b"x").unwrap();
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    // SAFETY: room for one event.
    assert_eq!(unsafe { libc::epoll_wait(326, &raw mut event, 1, 1000) }, 1);
    assert_eq!({ event.u64 }, 0x1234_5678_9abc);
    close(&numbers[1..2]);
    let mut rest = Vec::new();
    borrow(321).read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"x", "no copy of the writing end is left open");
    close(&numbers);
}

#[test]
fn a_lock_is_taken_again() {
    let _alone = PROCESS.lock();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("locked");
    let file = File::create(&path).unwrap();
    // SAFETY: flock with numbers.
    assert_eq!(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) }, 0);
    let numbers = [at(331, file)];
    let image = directory.path().join("image");
    write(&image, &numbers);
    close(&numbers);
    let other = File::open(&path).unwrap();
    let try_lock = || {
        // SAFETY: as above.
        unsafe { libc::flock(other.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) }
    };
    assert_eq!(try_lock(), 0);
    drop(restore_descriptors(&image).unwrap_err());
    // SAFETY: as above.
    unsafe { libc::flock(other.as_raw_fd(), libc::LOCK_UN) };
    restore_descriptors(&image).unwrap();
    assert_eq!(try_lock(), -1);
    close(&numbers);
}

#[test]
fn what_cannot_be_carried_is_named() {
    let _alone = PROCESS.lock();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    let kept = std::process::Command::new("sleep")
        .arg("100")
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut child = kept;
    let pipe = child.stdin.take().unwrap();
    let numbers = [at(341, listener), at(342, stream), at(343, pipe)];
    let refusals = capture::descriptors::survey(&numbers, &mut Contents::default()).unwrap_err();
    assert!(
        refusals[0].starts_with(&format!(
            "descriptor 341 is a listening TCP socket at 127.0.0.1:{port}"
        )),
        "{refusals:?}"
    );
    assert!(
        refusals[1].starts_with(&format!(
            "descriptor 342 is a TCP connection to 127.0.0.1:{port}"
        )),
        "{refusals:?}"
    );
    assert!(
        refusals[2].contains(&format!(
            "a pipe whose other end process {} has",
            child.id()
        )),
        "{refusals:?}"
    );
    let children = capture::refusals::of_process(&[], &[]);
    assert!(
        children.iter().any(|reason| reason.contains("(sleep)")),
        "{children:?}"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    close(&numbers);
}

#[test]
fn a_file_that_has_become_shorter_stops_the_restart() {
    let _alone = PROCESS.lock();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out");
    std::fs::write(&path, "twelve bytes").unwrap();
    let numbers = [at(351, OpenOptions::new().write(true).open(&path).unwrap())];
    let image = directory.path().join("image");
    let table = write(&image, &numbers);
    close(&numbers);
    std::fs::write(&path, "short").unwrap();
    let reasons = descriptors::missing(&table);
    assert!(
        reasons[0].contains("has 5 bytes; at the checkpoint it had 12"),
        "{reasons:?}"
    );
    let refused = Restore::check(Reader::open(&image).unwrap(), &environment::here(), 1)
        .err()
        .unwrap();
    assert!(
        refused.to_string().contains("at the checkpoint it had 12"),
        "{refused}"
    );
    std::fs::remove_file(&path).unwrap();
    assert!(descriptors::missing(&table)[0].contains("cannot be opened"));
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
    let refused = Restore::check(Reader::open(&image).unwrap(), &other, 1)
        .err()
        .unwrap();
    assert!(
        refused
            .to_string()
            .contains("MPI ABI openmpi, here it is mpich"),
        "{refused}"
    );
    assert!(Restore::check(Reader::open(&image).unwrap(), &environment::here(), 1).is_ok());
}

const PAGE: usize = 4096;

/// Maps memory of the arena for a test.
fn map(offset: usize, bytes: usize, protection: i32, flags: i32, file: RawFd) -> &'static mut [u8] {
    let wanted = (ARENA_START + offset) as *mut libc::c_void;
    // SAFETY: maps over nothing; the slice is unmapped by the test alone.
    unsafe {
        let flags = flags | libc::MAP_FIXED_NOREPLACE;
        assert_eq!(
            libc::mmap(wanted, bytes, protection, flags, file, 0),
            wanted
        );
        std::slice::from_raw_parts_mut(wanted.cast(), bytes)
    }
}

fn unmap_arena() {
    for mapping in maps::upper().unwrap() {
        // SAFETY: the tests' own mappings.
        unsafe { libc::munmap(mapping.start as *mut _, mapping.bytes()) };
    }
}

#[test]
fn memory_comes_back_at_its_addresses() {
    let _alone = PROCESS.lock();
    let directory = tempfile::tempdir().unwrap();
    let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let read_write = libc::PROT_READ | libc::PROT_WRITE;

    let heap = map(0, 3 << 20, read_write, anonymous, -1);
    heap.iter_mut()
        .enumerate()
        .step_by(3 * PAGE)
        .for_each(|(index, byte)| *byte = (index / PAGE) as u8 | 1);
    let heap_copy = heap.to_vec();
    // A reservation of 1 TiB with one page in it.
    let sparse = map(
        1 << 40,
        1 << 40,
        read_write,
        anonymous | libc::MAP_NORESERVE,
        -1,
    );
    sparse[1 << 39] = 9;
    let hidden = map(8 << 20, 4 * PAGE, read_write, anonymous, -1);
    hidden[PAGE] = 77;
    let guard = map(12 << 20, PAGE, libc::PROT_NONE, anonymous, -1);
    // SAFETY: the test's own mappings.
    unsafe {
        libc::mprotect(hidden.as_mut_ptr().cast(), 4 * PAGE, libc::PROT_NONE);
        libc::madvise(heap.as_mut_ptr().cast(), heap.len(), libc::MADV_DONTDUMP);
    }
    // A library: three pages and a bit of a file, mapped over five, one page changed.
    let library = directory.path().join("library");
    std::fs::write(&library, vec![5u8; 3 * PAGE + 10]).unwrap();
    let file = File::open(&library).unwrap();
    let text = map(
        16 << 20,
        5 * PAGE,
        read_write,
        libc::MAP_PRIVATE,
        file.as_raw_fd(),
    );
    text[PAGE] = 6;
    let text_copy = text[..4 * PAGE].to_vec();
    // Shared: a file, and memory.
    let shared_path = directory.path().join("shared");
    std::fs::write(&shared_path, vec![0u8; 2 * PAGE]).unwrap();
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&shared_path)
        .unwrap();
    let shared_file = map(
        20 << 20,
        2 * PAGE,
        read_write,
        libc::MAP_SHARED,
        file.as_raw_fd(),
    );
    shared_file[PAGE + 1] = 8;
    let shared_memory = map(
        24 << 20,
        16 * PAGE,
        read_write,
        libc::MAP_SHARED | libc::MAP_ANONYMOUS,
        -1,
    );
    shared_memory[5 * PAGE] = 3;
    // One object seen through two mappings.
    // SAFETY: the test's own mappings.
    unsafe {
        let again = (ARENA_START + (28 << 20)) as *mut libc::c_void;
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        assert_eq!(
            libc::mremap(
                shared_memory.as_mut_ptr().cast(),
                0,
                16 * PAGE,
                flags,
                again
            ),
            again
        );
    }
    drop(file);

    let image = directory.path().join("image");
    write(&image, &[]);
    let reader = Reader::open(&image).unwrap();
    assert!(
        reader.file_bytes() < 1 << 16,
        "untouched memory takes no room: {}",
        reader.file_bytes()
    );
    let before = reader.regions().to_vec();
    let kinds: Vec<RegionKind> = before.iter().map(|region| region.kind).collect();
    assert!(kinds.contains(&RegionKind::SharedFile) && kinds.contains(&RegionKind::PrivateFile));
    unmap_arena();
    std::fs::remove_file(&library).unwrap();
    std::fs::write(&shared_path, b"overwritten").unwrap();

    // SAFETY: the arena is empty.
    unsafe {
        memory::map(&reader, &mut Objects::default(), 2).unwrap();
        shared::map_files(&reader).unwrap();
    }
    let mappings = maps::upper().unwrap();
    assert_eq!(
        mappings
            .iter()
            .map(|mapping| mapping.bytes())
            .sum::<usize>() as u64,
        before.iter().map(|region| region.bytes()).sum::<u64>()
    );
    assert!(*heap == *heap_copy);
    assert_eq!(sparse[1 << 39], 9);
    assert!(text[..4 * PAGE] == text_copy);
    assert_eq!((shared_file[PAGE + 1], shared_memory[5 * PAGE]), (8, 3));
    shared_memory[6 * PAGE] = 4;
    // SAFETY: mapped again by the restore.
    assert_eq!(
        unsafe { *((ARENA_START + (28 << 20) + 6 * PAGE) as *const u8) },
        4,
        "still one object"
    );
    let find = |address: usize| {
        mappings
            .iter()
            .find(|mapping| mapping.start <= address && address < mapping.end)
            .unwrap()
    };
    assert_eq!(find(hidden.as_ptr() as usize).protection, libc::PROT_NONE);
    assert_eq!(find(guard.as_ptr() as usize).protection, libc::PROT_NONE);
    assert_ne!(
        find(heap.as_ptr() as usize).vm_flags & vm_flags::DONT_DUMP,
        0
    );
    // SAFETY: the test's own mapping.
    unsafe { libc::mprotect(hidden.as_mut_ptr().cast(), 4 * PAGE, libc::PROT_READ) };
    assert_eq!(hidden[PAGE], 77);

    // SAFETY: nothing is mapped over what is there.
    let taken = unsafe { memory::map(&reader, &mut Objects::default(), 1) }
        .unwrap_err()
        .to_string();
    assert!(taken.contains("is taken in this process: 1000"), "{taken}");
    unmap_arena();
}
