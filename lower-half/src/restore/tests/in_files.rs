//! Memory that an image leaves in part to a file.

use std::path::PathBuf;

use stillpoint_image::mapped_files::{FileIdentity, MappedFile, Referred, sum};

use super::regions::{map, unmap_arena};
use super::*;
use crate::arch::PAGE;
use stillpoint_tracking::pagemap::PageMap;

const PAGES: usize = 9;

/// A file that is mapped twice, with two pages behind it, and an image that holds two pages of its own of the first mapping.
struct Mapped {
    path: PathBuf,
    image: PathBuf,
    memory: &'static mut [u8],
    text: &'static mut [u8],
}

impl Mapped {
    fn written(directory: &Path) -> Mapped {
        let (path, image) = (directory.join("file"), directory.join("image"));
        std::fs::write(&path, vec![5; PAGES * PAGE]).unwrap();
        let file = File::open(&path).unwrap();
        let (bytes, number) = ((PAGES + 2) * PAGE, file.as_raw_fd());
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let memory = map(0, bytes, protection, libc::MAP_PRIVATE, number);
        let text = map(1 << 20, PAGE, libc::PROT_READ, libc::MAP_PRIVATE, number);
        assert_eq!(memory[PAGE], 5);
        memory[2 * PAGE..3 * PAGE].fill(6);
        memory[4 * PAGE..5 * PAGE].fill(0);
        let identity = FileIdentity::of(&file.metadata().unwrap());
        let mapped = vec![(0, identity.bytes)];
        let mut pages = PageMap::open().unwrap();
        let regions = maps::upper().unwrap().into_iter().map(|mapping| {
            let mut referred = Referred {
                start: mapping.start as u64,
                end: mapping.end as u64,
                offset: 0,
                file: 0,
                own: vec![],
            };
            referred.set_own(&pages.own(mapping.addresses()).unwrap());
            referred
        });
        let files = MappedFiles {
            begun: 0,
            regions: regions.collect(),
            files: vec![MappedFile {
                path: path.to_str().unwrap().to_owned(),
                identity,
                sum: sum(&file, &mapped, || true).unwrap(),
                mapped,
            }],
            kept: vec![],
        };
        assert_eq!(files.regions[0].own, [2, 1, 1, 1]);
        write_but(&image, &[], &files);
        unmap_arena();
        Mapped {
            path,
            image,
            memory,
            text,
        }
    }

    fn page(&self, page: usize) -> u8 {
        let bytes = &self.memory[page * PAGE..(page + 1) * PAGE];
        assert!(bytes.iter().all(|byte| *byte == bytes[0]));
        bytes[0]
    }
}

#[test]
fn what_the_image_has_not_is_the_files() {
    let _alone = PROCESS.lock();
    let directory = tempfile::tempdir().unwrap();
    let mapped = Mapped::written(directory.path());
    let reader = Reader::open(&mapped.image).unwrap();
    let mut in_files = InFiles::hold(&reader).unwrap();
    // A file that takes this name now is not the one that was checked.
    let other = directory.path().join("other");
    std::fs::write(&other, vec![9; PAGES * PAGE]).unwrap();
    std::fs::rename(&other, &mapped.path).unwrap();
    // SAFETY: nothing is mapped in the arena, and no other test uses it meanwhile (`PROCESS`).
    unsafe { bring(&reader, &mut in_files).unwrap() };
    let pages: Vec<u8> = (0..PAGES).map(|page| mapped.page(page)).collect();
    assert_eq!(pages, [5, 5, 6, 5, 0, 5, 5, 5, 5]);
    assert!(mapped.text.iter().all(|byte| *byte == 5));
    let mappings = maps::upper().unwrap();
    let protections: Vec<i32> = mappings.iter().map(|one| one.protection).collect();
    assert_eq!(
        protections,
        [libc::PROT_READ | libc::PROT_WRITE, libc::PROT_READ]
    );
    // Pages that were never written to are still the file's, not this process's own.
    let mut pages = PageMap::open().unwrap();
    let start = mapped.memory.as_ptr() as usize;
    let own = [2, 4].map(|page| start + page * PAGE..start + (page + 1) * PAGE);
    assert_eq!(pages.own(mappings[0].addresses()).unwrap(), own);
    assert_eq!(pages.own(mappings[1].addresses()).unwrap(), []);
    // SAFETY: these pages lie in the test's own mapping; the kernel drops them, and the mapping stays.
    unsafe { libc::madvise((start + 2 * PAGE) as *mut _, 3 * PAGE, libc::MADV_DONTNEED) };
    assert_eq!((mapped.page(2), mapped.page(4)), (5, 5));
    unmap_arena();
}

#[test]
fn another_file_is_refused_before_anything_is_mapped() {
    let _alone = PROCESS.lock();
    let directory = tempfile::tempdir().unwrap();
    let mapped = Mapped::written(directory.path());
    let refused = |needle: &str| {
        let reader = Reader::open(&mapped.image).unwrap();
        let said = Restore::check(reader, &environment::here(), 1, |_| vec![])
            .err()
            .unwrap();
        assert!(said.to_string().contains(needle), "{said}");
        assert!(maps::upper().unwrap().is_empty());
    };
    let mut bytes = vec![5; PAGES * PAGE];
    std::fs::remove_file(&mapped.path).unwrap();
    refused("but the file is missing here");
    std::fs::write(&mapped.path, &bytes).unwrap();
    let reader = Reader::open(&mapped.image).unwrap();
    assert!(Restore::check(reader, &environment::here(), 1, |_| vec![]).is_ok());
    bytes[3 * PAGE] = 0;
    std::fs::write(&mapped.path, &bytes).unwrap();
    refused("but the file has other contents here");
}

#[test]
fn what_does_not_fit_the_regions_is_refused() {
    let _alone = PROCESS.lock();
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    map(
        0,
        PAGE,
        libc::PROT_READ,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        -1,
    );
    let files = MappedFiles {
        regions: vec![Referred {
            start: ARENA_START as u64,
            end: (ARENA_START + PAGE) as u64,
            ..Referred::default()
        }],
        files: vec![MappedFile::default()],
        ..MappedFiles::default()
    };
    write_unsound(&image, &files);
    unmap_arena();
    let said = InFiles::hold(&Reader::open(&image).unwrap()).err().unwrap();
    assert!(
        said.details().contains("does not fit the image's regions"),
        "{said}"
    );
}
