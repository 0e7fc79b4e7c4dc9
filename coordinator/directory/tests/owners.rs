//! Files and directories that other users may have put into a directory, and the crate's answer to each.

use std::fs::{self, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use stillpoint_directory::{
    Directory, RequiredOwner, create, open, open_or_create, overwrite, read, scratch,
};

fn kind<T>(result: std::io::Result<T>) -> ErrorKind {
    result.map(drop).unwrap_err().kind()
}

#[test]
fn a_directory_that_others_can_write_to_is_not_ours() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("d");
    let held = Directory::make(&path).unwrap();
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o700
    );
    for mode in [0o720, 0o702, 0o777, 0o1777] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        assert_eq!(
            kind(Directory::make(&path)),
            ErrorKind::PermissionDenied,
            "{mode:o}"
        );
        assert!(Directory::open(&path, RequiredOwner::Anyones).is_ok());
    }
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    Directory::make(&path).unwrap();
    // The same holds for a directory or a file in it.
    held.make_below("epoch", None).unwrap();
    held.create("file").unwrap();
    for name in ["epoch", "file"] {
        fs::set_permissions(path.join(name), Permissions::from_mode(0o777)).unwrap();
    }
    assert_eq!(kind(held.below("epoch")), ErrorKind::PermissionDenied);
    assert_eq!(kind(held.open_file("file")), ErrorKind::PermissionDenied);
}

/// Runs as root only: other users cannot give a directory away.
#[test]
fn a_directory_of_another_user_is_not_ours() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("d");
    Directory::make(&path).unwrap();
    if std::os::unix::fs::chown(&path, Some(65_534), None).is_err() {
        return;
    }
    let error = Directory::open(&path, RequiredOwner::Ours).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    assert!(
        error.to_string().contains("belongs to user 65534"),
        "{error}"
    );
    let link = root.path().join("link");
    symlink(root.path(), &link).unwrap();
    Directory::open(&link, RequiredOwner::Ours).unwrap();
    std::os::unix::fs::lchown(&link, Some(65_534), None).unwrap();
    let error = Directory::open(&link, RequiredOwner::Ours).unwrap_err();
    assert!(
        error.to_string().contains("a symbolic link that belongs"),
        "{error}"
    );
}

#[test]
fn no_link_is_followed_and_no_fifo_waited_for() {
    let root = tempfile::tempdir().unwrap();
    let held = Directory::open(root.path(), RequiredOwner::Ours).unwrap();
    let victim = root.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    let at = |name: &str| root.path().join(name);
    symlink(&victim, at("link")).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(at("fifo"))
            .status()
            .unwrap()
            .success()
    );
    for name in ["link", "fifo", "."] {
        let path = at(name);
        assert!(open(&path).is_err(), "{name}");
        assert!(read(&path, 10).is_err(), "{name}");
        assert!(open_or_create(&path).is_err(), "{name}");
        assert!(held.append(name).is_err(), "{name}");
        assert!(held.open_file(name).is_err(), "{name}");
    }
    // A new file replaces a link or a FIFO of its name.
    for name in ["link", "fifo"] {
        create(&at(name)).unwrap().write_all(b"new").unwrap();
        assert!(fs::symlink_metadata(at(name)).unwrap().is_file(), "{name}");
    }
    symlink(&victim, at(".job.json.new")).unwrap();
    held.replace("job.json", b"{}", None).unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert_eq!(held.read("job.json", 2).unwrap(), b"{}");
    assert!(
        held.read("job.json", 1)
            .unwrap_err()
            .to_string()
            .contains("longer than 1 ")
    );
}

#[test]
fn a_file_that_several_hosts_write_is_not_opened_to_read_it() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("image");
    fs::write(&path, "0123456789").unwrap();
    let mut file = overwrite(&path).unwrap();
    file.write_all(b"abc").unwrap();
    assert!(file.read(&mut [0; 1]).is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), "abc3456789");
}

#[test]
fn what_is_removed_goes_and_what_a_link_leads_to_stays() {
    let root = tempfile::tempdir().unwrap();
    let held = Directory::open(root.path(), RequiredOwner::Ours).unwrap();
    let precious = root.path().join("precious");
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join("file"), "x").unwrap();
    let part = held.make_below("part", None).unwrap();
    part.create("image").unwrap();
    part.make_below("deeper", None)
        .unwrap()
        .create("image")
        .unwrap();
    symlink(&precious, root.path().join("part/link")).unwrap();
    held.remove_all("part", None).unwrap();
    held.remove_all("part", None).unwrap();
    symlink(&precious, root.path().join("part")).unwrap();
    held.remove_all("part", None).unwrap();
    assert!(!root.path().join("part").exists());
    assert!(precious.join("file").exists());
}

#[test]
fn a_file_without_a_name_leaves_nothing() {
    let root = tempfile::tempdir().unwrap();
    let mut file = scratch(root.path()).unwrap();
    file.write_all(b"x").unwrap();
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    assert!(scratch(Path::new("/nonexistent")).is_err());
}

#[test]
fn a_directory_that_was_replaced_is_known() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("d");
    let held = Directory::make(&path).unwrap();
    held.still_at_its_path().unwrap();
    fs::rename(&path, root.path().join("moved")).unwrap();
    assert!(held.still_at_its_path().is_err());
    Directory::make(&path).unwrap();
    let error = held.still_at_its_path().unwrap_err().to_string();
    assert!(error.contains("does not touch its path"), "{error}");
    // The held directory is still at the place it was moved to.
    held.create("file").unwrap();
    assert!(root.path().join("moved/file").exists() && !path.join("file").exists());
}

#[test]
fn whoever_replaces_a_file_at_once_it_is_always_whole() {
    let root = tempfile::tempdir().unwrap();
    let held = Directory::open(root.path(), RequiredOwner::Ours).unwrap();
    let left = ".file.1-2-3.new";
    fs::write(root.path().join(left), "left by a crash").unwrap();
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    fs::File::open(root.path().join(left))
        .unwrap()
        .set_modified(long_ago)
        .unwrap();
    held.replace("file", &[b'0'; 5000], None).unwrap();
    assert!(!root.path().join(left).exists());
    std::thread::scope(|scope| {
        for letter in b'1'..b'5' {
            let held = &held;
            scope.spawn(move || {
                for _ in 0..50 {
                    held.replace("file", &[letter; 5000], None).unwrap();
                    let found = held.read("file", 5000).unwrap();
                    assert_eq!(found.len(), 5000);
                    assert!(found.iter().all(|byte| *byte == found[0]));
                }
            });
        }
    });
    let names = held.names().unwrap();
    assert_eq!(names, ["file"], "{names:?}");
}
