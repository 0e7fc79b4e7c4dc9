//! Tests of the files that pass for the one that was mapped, and of the texts that refuse others.

use std::fs::OpenOptions;
use std::time::{Duration, SystemTime};

use super::*;

/// Makes a file of three pages and ten bytes, of which the second and third page are mapped.
fn mapped(directory: &tempfile::TempDir) -> MappedFile {
    let path = directory.path().join("data");
    let bytes: Vec<u8> = (0..3 * PAGE + 10).map(|at| (at / 7) as u8).collect();
    std::fs::write(&path, bytes).unwrap();
    let file = File::open(&path).unwrap();
    let parts = vec![(PAGE as u64, 3 * PAGE as u64)];
    MappedFile {
        path: path.to_str().unwrap().to_owned(),
        identity: FileIdentity::of(&file.metadata().unwrap()),
        sum: sum(&file, &parts, || true).unwrap(),
        mapped: parts,
    }
}

fn refused(file: &MappedFile, needle: &str) {
    let said = file.open().unwrap_err();
    assert!(said.contains(needle) && said.contains(&file.path), "{said}");
    assert!(said.contains("--mapped-files keep"), "{said}");
}

#[test]
fn the_very_file_is_not_read_and_another_is_known_by_what_is_mapped() {
    let directory = tempfile::tempdir().unwrap();
    let mut file = mapped(&directory);
    let sum = file.sum.replace(Sum(0));
    file.open().unwrap();
    let set_time = |seconds| {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let file = OpenOptions::new().write(true).open(&file.path).unwrap();
        file.set_modified(time).unwrap();
    };
    set_time(1_000_000);
    refused(&file, "other contents");
    file.sum = sum;
    file.open().unwrap();
    // Bytes that are not mapped may differ; mapped ones may not.
    let mut bytes = std::fs::read(&file.path).unwrap();
    bytes[5] ^= 1;
    std::fs::write(&file.path, &bytes).unwrap();
    file.open().unwrap();
    bytes[2 * PAGE] ^= 1;
    std::fs::write(&file.path, &bytes).unwrap();
    refused(&file, "other contents");
}

#[test]
fn another_length_and_a_file_that_is_gone_are_told_as_such() {
    let directory = tempfile::tempdir().unwrap();
    let file = mapped(&directory);
    std::fs::write(&file.path, b"short").unwrap();
    refused(&file, "has 5 bytes here instead of 12298");
    std::fs::remove_file(&file.path).unwrap();
    refused(&file, "missing");
    std::fs::create_dir(&file.path).unwrap();
    refused(&file, "not a regular file");
}

#[test]
fn without_a_sum_the_time_decides() {
    let directory = tempfile::tempdir().unwrap();
    let mut file = mapped(&directory);
    file.sum = None;
    let bytes = std::fs::read(&file.path).unwrap();
    let modified = std::fs::metadata(&file.path).unwrap().modified().unwrap();
    std::fs::remove_file(&file.path).unwrap();
    std::fs::write(&file.path, bytes).unwrap();
    let copy = OpenOptions::new().write(true).open(&file.path).unwrap();
    copy.set_modified(modified).unwrap();
    file.open().unwrap();
    copy.set_modified(modified + Duration::from_secs(1))
        .unwrap();
    refused(&file, "modified at another time");
}

#[test]
fn own_pages_read_as_they_were_noted() {
    let page = PAGE as u64;
    let mut one = Referred {
        start: 16 * page,
        end: 32 * page,
        ..Referred::default()
    };
    let at = |page: usize| page * PAGE;
    one.set_own(&[at(16)..at(17), at(20)..at(22), at(31)..at(32)]);
    assert_eq!(one.own, [0, 1, 3, 2, 9, 1]);
    let own: Vec<Range<u64>> = one.own().collect();
    assert_eq!(
        own,
        [
            16 * page..17 * page,
            20 * page..22 * page,
            31 * page..32 * page
        ]
    );
    let files = MappedFiles {
        files: vec![MappedFile {
            identity: FileIdentity {
                bytes: 10 * page + 1,
                ..FileIdentity::default()
            },
            ..MappedFile::default()
        }],
        ..MappedFiles::default()
    };
    assert_eq!(files.bytes_in_file(&one), 11 * page - 4 * page);
}

#[test]
fn a_sum_that_nobody_waits_for_is_given_up() {
    let directory = tempfile::tempdir().unwrap();
    let file = mapped(&directory);
    let opened = File::open(&file.path).unwrap();
    assert_eq!(sum(&opened, &file.mapped, || false).unwrap(), None);
}

#[test]
fn what_cannot_have_been_mapped_is_not_believed() {
    let file = |bytes: u64, mapped: &[(u64, u64)]| MappedFile {
        identity: FileIdentity {
            bytes,
            ..FileIdentity::default()
        },
        mapped: mapped.to_vec(),
        ..MappedFile::default()
    };
    assert!(file(9, &[(0, 4), (4, 5), (7, 9)]).is_sound());
    assert!(!file(9, &[(0, 10)]).is_sound());
    assert!(!file(9, &[(3, 3)]).is_sound());
    assert!(!file(9, &[(3, 5), (4, 9)]).is_sound());
    assert!(!file(u64::MAX, &[(0, 9)]).is_sound());
}
