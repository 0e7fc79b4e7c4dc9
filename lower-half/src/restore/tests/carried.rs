//! Memory that an image holds in part, and earlier images hold the rest of.

use stillpoint_ids::{Epoch, Rank};
use stillpoint_image::{epoch_name, image_name};

use super::regions::{map, unmap_arena};
use super::*;
use crate::arch::PAGE;

#[test]
fn memory_comes_back_from_several_epochs() {
    let _alone = PROCESS.lock();
    let directory = tempfile::tempdir().unwrap();
    let image = image_name(Rank(0));
    let path = |epoch: Epoch| directory.path().join(epoch_name(epoch)).join(&image);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let heap = map(0, 400 * PAGE, access, flags, -1);
    for (index, byte) in heap.iter_mut().enumerate() {
        *byte = (index / 7) as u8 | 1;
    }
    // The file has all of the library's bytes, so that a restart maps the file again.
    let library = directory.path().join("library");
    std::fs::write(&library, [5; 4 * PAGE]).unwrap();
    let file = File::open(&library).unwrap();
    let private = libc::MAP_PRIVATE;
    let text = map(16 << 20, 4 * PAGE, access, private, file.as_raw_fd());
    let mut base: Option<Base> = None;
    for epoch in (1..=4).map(Epoch) {
        let mut changed = vec![];
        if epoch > Epoch(1) {
            // In the middle of pages, across their borders, and over earlier epochs' changes.
            let at = epoch.0 as usize;
            let pieces = [
                (100, 200, 9),
                (at * 1000, at * 1000 + 500, at as u8),
                (50 * PAGE + 4000, 50 * PAGE + 4100, 0),
                (60 * PAGE + at * 100, 63 * PAGE + at * 100, at as u8),
            ];
            // In the library: zeros where the file has other bytes, between unchanged bytes.
            let zeros = 2 * PAGE + 10 * at;
            let of_text = [(zeros, zeros + 10, 0), (3 * PAGE - 5, 3 * PAGE, at as u8)];
            for (memory, pieces) in [(&mut *heap, &pieces[..]), (&mut *text, &of_text)] {
                let start = memory.as_ptr() as u64;
                for (from, to, value) in pieces {
                    memory[*from..*to].fill(*value);
                    changed.push(start + *from as u64..start + *to as u64);
                }
            }
        }
        std::fs::create_dir(path(epoch).parent().unwrap()).unwrap();
        let upon = base.as_ref().map(|base| (base, changed.as_slice()));
        write_upon(&path(epoch), &[], epoch, upon);
        base = Some(Reader::open(&path(epoch)).unwrap().base());
    }
    let (heap_was, text_was) = (heap.to_vec(), text.to_vec());
    let reader = Reader::open(&path(Epoch(4))).unwrap();
    let epochs: Vec<Epoch> = reader.origins().iter().map(|origin| origin.epoch).collect();
    assert_eq!(epochs, [1, 2, 3].map(Epoch));
    // With the library's file, and without.
    for there in [true, false] {
        unmap_arena();
        if !there {
            std::fs::remove_file(&library).unwrap();
        }
        // SAFETY: `unmap_arena` has emptied the arena.
        unsafe { bring(&reader, &mut InFiles::default()) }.unwrap();
        let mappings = maps::upper().unwrap();
        let start = text.as_ptr() as usize;
        let again = mappings.iter().find(|mapping| mapping.start == start);
        assert_eq!(again.unwrap().inode != 0, there);
        assert!(*heap == *heap_was);
        assert!(*text == *text_was);
    }
    unmap_arena();
    let first = path(Epoch(1));
    let mut bytes = std::fs::read(&first).unwrap();
    bytes[70] ^= 1;
    std::fs::write(&first, &bytes).unwrap();
    // SAFETY: `unmap_arena` has emptied the arena.
    let broken = unsafe { bring(&reader, &mut InFiles::default()) };
    let broken = broken.unwrap_err().to_string();
    assert!(broken.contains("epoch-000001/rank-000000.img"), "{broken}");
    unmap_arena();
    assert!(Restore::check(reader, &environment::here(), 2, |_| vec![]).is_ok());
}
