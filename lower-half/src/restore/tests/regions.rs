//! Memory, private and shared.

use std::path::PathBuf;

use super::*;
use crate::arch::PAGE;

/// Maps memory of the arena for a test.
pub fn map(
    offset: usize,
    bytes: usize,
    protection: i32,
    flags: i32,
    file: RawFd,
) -> &'static mut [u8] {
    let wanted = (ARENA_START + offset) as *mut libc::c_void;
    // SAFETY: MAP_FIXED_NOREPLACE maps over nothing; only this test uses the memory and unmaps it.
    unsafe {
        let flags = flags | libc::MAP_FIXED_NOREPLACE;
        assert_eq!(
            libc::mmap(wanted, bytes, protection, flags, file, 0),
            wanted
        );
        std::slice::from_raw_parts_mut(wanted.cast(), bytes)
    }
}

pub fn unmap_arena() {
    for mapping in maps::upper().unwrap() {
        // SAFETY: everything in the arena is mapped by tests, of which only this one runs (`PROCESS`).
        unsafe { libc::munmap(mapping.start as *mut _, mapping.bytes()) };
    }
}

const ANONYMOUS: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;

/// Memory of the test's process alone.
struct Private {
    heap: &'static mut [u8],
    heap_was: Vec<u8>,
    /// A reservation of 128 GiB with one page in it.
    sparse: &'static mut [u8],
    hidden: &'static mut [u8],
    guard: &'static mut [u8],
}

impl Private {
    fn map() -> Private {
        let heap = map(0, 3 << 20, READ_WRITE, ANONYMOUS, -1);
        for (index, byte) in heap.iter_mut().enumerate().step_by(3 * PAGE) {
            *byte = (index / PAGE) as u8 | 1;
        }
        let reservation = ANONYMOUS | libc::MAP_NORESERVE;
        let sparse = map(1 << 37, 1 << 37, READ_WRITE, reservation, -1);
        sparse[1 << 36] = 9;
        let hidden = map(8 << 20, 4 * PAGE, READ_WRITE, ANONYMOUS, -1);
        hidden[PAGE] = 77;
        let guard = map(12 << 20, PAGE, libc::PROT_NONE, ANONYMOUS, -1);
        // SAFETY: these ranges are the test's own mappings.
        unsafe {
            libc::mprotect(hidden.as_mut_ptr().cast(), 4 * PAGE, libc::PROT_NONE);
            libc::madvise(heap.as_mut_ptr().cast(), heap.len(), libc::MADV_DONTDUMP);
        }
        Private {
            heap_was: heap.to_vec(),
            heap,
            sparse,
            hidden,
            guard,
        }
    }

    fn is_back(&self, mappings: &[maps::Mapping]) {
        assert!(*self.heap == *self.heap_was);
        assert_eq!(self.sparse[1 << 36], 9);
        let find = |memory: &[u8]| {
            let address = memory.as_ptr() as usize;
            let around = |one: &&maps::Mapping| (one.start..one.end).contains(&address);
            mappings.iter().find(around).unwrap()
        };
        assert_eq!(find(self.hidden).protection, libc::PROT_NONE);
        assert_eq!(find(self.guard).protection, libc::PROT_NONE);
        assert_ne!(find(self.heap).vm_flags & vm_flags::DONT_DUMP, 0);
        let hidden = self.hidden.as_ptr() as *mut libc::c_void;
        // SAFETY: the range is the test's own mapping, brought back by the restore.
        unsafe { libc::mprotect(hidden, 4 * PAGE, libc::PROT_READ) };
        assert_eq!(self.hidden[PAGE], 77);
    }
}

/// A library: three pages and a bit of a file, mapped over five, one page changed.
struct Library {
    path: PathBuf,
    text: &'static mut [u8],
    text_was: Vec<u8>,
}

impl Library {
    fn map(directory: &Path) -> Library {
        let path = directory.join("library");
        std::fs::write(&path, vec![5u8; 3 * PAGE + 10]).unwrap();
        let file = File::open(&path).unwrap();
        let (bytes, private) = (5 * PAGE, libc::MAP_PRIVATE);
        let text = map(16 << 20, bytes, READ_WRITE, private, file.as_raw_fd());
        text[PAGE] = 6;
        Library {
            path,
            text_was: text[..4 * PAGE].to_vec(),
            text,
        }
    }

    fn is_back(&self) {
        assert!(self.text[..4 * PAGE] == self.text_was);
    }
}

/// A shared file, and shared memory with two mappings.
struct Shared {
    path: PathBuf,
    file: &'static mut [u8],
    memory: &'static mut [u8],
    again: *const u8,
}

impl Shared {
    fn map(directory: &Path) -> Shared {
        let path = directory.join("shared");
        std::fs::write(&path, vec![0u8; 2 * PAGE]).unwrap();
        let mut options = OpenOptions::new();
        let opened = options.read(true).write(true).open(&path).unwrap();
        let (bytes, number) = (2 * PAGE, opened.as_raw_fd());
        let file = map(20 << 20, bytes, READ_WRITE, libc::MAP_SHARED, number);
        file[PAGE + 1] = 8;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        let memory = map(24 << 20, 16 * PAGE, READ_WRITE, flags, -1);
        memory[5 * PAGE] = 3;
        let again = (ARENA_START + (28 << 20)) as *mut libc::c_void;
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        let from = memory.as_mut_ptr().cast();
        // SAFETY: the addresses are the test's own mapping; `again` is free.
        let second = unsafe { libc::mremap(from, 0, 16 * PAGE, flags, again) };
        assert_eq!(second, again);
        Shared {
            path,
            file,
            memory,
            again: again.cast(),
        }
    }

    fn is_back(&mut self) {
        assert_eq!((self.file[PAGE + 1], self.memory[5 * PAGE]), (8, 3));
        self.memory[6 * PAGE] = 4;
        // SAFETY: the restore has mapped both again, and page 6 lies within.
        let seen = unsafe { self.again.add(6 * PAGE).read() };
        assert_eq!(seen, 4, "still one object");
    }
}

#[test]
fn memory_comes_back_at_its_addresses() {
    let _alone = PROCESS.lock();
    let directory = tempfile::tempdir().unwrap();
    let private = Private::map();
    let library = Library::map(directory.path());
    let mut shared = Shared::map(directory.path());

    let image = directory.path().join("image");
    write(&image, &[]);
    let reader = Reader::open(&image).unwrap();
    let length = reader.file_bytes();
    assert!(length < 1 << 16, "untouched memory takes no room: {length}");
    let before = reader.regions().to_vec();
    let kinds: Vec<RegionKind> = before.iter().map(|region| region.kind).collect();
    assert!(kinds.contains(&RegionKind::SharedFile) && kinds.contains(&RegionKind::PrivateFile));
    unmap_arena();
    std::fs::remove_file(&library.path).unwrap();
    std::fs::write(&shared.path, b"overwritten").unwrap();

    // SAFETY: nothing is mapped in the arena, and no other test uses it meanwhile (`PROCESS`).
    unsafe {
        bring(&reader, &mut InFiles::default()).unwrap();
        super::shared::map_files(&reader).unwrap();
    }
    let mappings = maps::upper().unwrap();
    let there: usize = mappings.iter().map(maps::Mapping::bytes).sum();
    let recorded: u64 = before.iter().map(|region| region.bytes()).sum();
    assert_eq!(there as u64, recorded);
    private.is_back(&mappings);
    library.is_back();
    shared.is_back();

    // SAFETY: memory that is there is not mapped over: the restore refuses instead.
    let taken = unsafe { bring(&reader, &mut InFiles::default()) };
    let taken = taken.unwrap_err().to_string();
    assert!(taken.contains("already: 5501"), "{taken}");
    unmap_arena();
}
