//! Memory, private and shared.

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

pub fn unmap_arena() {
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
    // A reservation of 128 GiB with one page in it.
    let sparse = map(
        1 << 37,
        1 << 37,
        read_write,
        anonymous | libc::MAP_NORESERVE,
        -1,
    );
    sparse[1 << 36] = 9;
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
    assert_eq!(sparse[1 << 36], 9);
    assert!(text[..4 * PAGE] == text_copy);
    assert_eq!((shared_file[PAGE + 1], shared_memory[5 * PAGE]), (8, 3));
    shared_memory[6 * PAGE] = 4;
    // SAFETY: mapped again by the restore.
    assert_eq!(
        // SAFETY: what was asked for is mapped there.
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
    assert!(taken.contains("is taken in this process: 5501"), "{taken}");
    unmap_arena();
}
