//! Epochs appear in one step, and disappear in one.

use stillpoint_ids::{Epoch, Rank};
use stillpoint_image::{Manifest, image_name};

use super::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;

pub(super) fn epochs_in(directory: &Path) -> Epochs {
    let held = Directory::open(directory, RequiredOwner::Ours).unwrap();
    Epochs::of(held, Mark::random().unwrap())
}

pub(super) fn written(part: &Path, rank: u32, bytes: usize) -> Written {
    fs::write(part.join(image_name(Rank(rank))), vec![0; bytes]).unwrap();
    Written {
        stored_bytes: bytes as u64,
        bytes: 0,
        digest: 7,
        seconds: 0.0,
        contract: 5,
        needs: vec![],
        increment: None,
    }
}

fn commit(epochs: &Epochs, epoch: Epoch) -> Result<PathBuf, EpochError> {
    let part = epochs.prepare(epoch)?;
    let images = [written(&part, 0, 10), written(&part, 1, 20)];
    epochs.commit(epoch, &images, &Description::default())
}

#[test]
fn an_epoch_is_there_only_when_it_is_committed() {
    let directory = tempfile::tempdir().unwrap();
    let epochs = epochs_in(directory.path());
    let part = epochs.prepare(Epoch(1)).unwrap();
    let mode = fs::metadata(&part).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert!(epochs.committed().unwrap().is_empty());
    let images = [written(&part, 0, 10)];
    let path = epochs
        .commit(Epoch(1), &images, &Description::default())
        .unwrap();
    assert_eq!(epochs.committed().unwrap(), [1].map(Epoch));
    let manifest = Manifest::read(&path).unwrap();
    assert_eq!((manifest.epoch, manifest.ranks.len()), (Epoch(1), 1));
    assert_eq!((manifest.ranks[0].bytes, manifest.ranks[0].digest), (10, 7));
}

#[test]
fn an_image_of_another_length_or_none_is_not_committed() {
    let directory = tempfile::tempdir().unwrap();
    let epochs = epochs_in(directory.path());
    let part = epochs.prepare(Epoch(1)).unwrap();
    let image = written(&part, 0, 10);
    fs::write(part.join(image_name(Rank(0))), [0; 9]).unwrap();
    let commit = |images: &[Written]| epochs.commit(Epoch(1), images, &Description::default());
    assert!(matches!(
        commit(std::slice::from_ref(&image)),
        Err(EpochError::WrongLength {
            rank: Rank(0),
            found: 9,
            ..
        })
    ));
    fs::remove_file(part.join(image_name(Rank(0)))).unwrap();
    assert!(commit(&[image]).is_err());
    assert!(epochs.committed().unwrap().is_empty());
}

#[test]
fn older_epochs_go_and_strangers_stay() {
    let directory = tempfile::tempdir().unwrap();
    let epochs = epochs_in(directory.path());
    fs::create_dir(directory.path().join("epoch-notes")).unwrap();
    for epoch in (1..=4).map(Epoch) {
        commit(&epochs, epoch).unwrap();
    }
    epochs.prepare(Epoch(2)).unwrap();
    let newer = epochs.prepare(Epoch(9)).unwrap();
    assert!(epochs.prune(2).is_empty());
    assert_eq!(epochs.committed().unwrap(), [3, 4].map(Epoch));
    let mut names: Vec<String> = fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    // A part that is newer than every epoch may belong to a checkpoint under way.
    let expected = [
        "epoch-000003",
        "epoch-000004",
        newer.file_name().unwrap().to_str().unwrap(),
        "epoch-notes",
    ];
    assert_eq!(names, expected);
    epochs.remove_parts().unwrap();
    assert!(!newer.exists());
}

#[test]
fn an_epoch_has_the_contract_of_its_images_which_is_one() {
    let directory = tempfile::tempdir().unwrap();
    let epochs = epochs_in(directory.path());
    let path = commit(&epochs, Epoch(1)).unwrap();
    assert_eq!(Manifest::read(&path).unwrap().gate_version, 5);
    let part = epochs.prepare(Epoch(2)).unwrap();
    let mut images = [written(&part, 0, 10), written(&part, 1, 20)];
    images[1].contract = 0xabc;
    let about = Description::default();
    for refused in [
        epochs.commit(Epoch(2), &images, &about),
        epochs.stage(Epoch(2), &images, &about),
    ] {
        let error = refused.unwrap_err().to_string();
        let needles = ["rank 1", "00000abc", "rank 0", "00000005"];
        assert!(
            needles.iter().all(|needle| error.contains(needle)),
            "{error}"
        );
    }
    assert_eq!(epochs.committed().unwrap(), [1].map(Epoch));
}

#[test]
fn at_least_one_epoch_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let epochs = epochs_in(directory.path());
    commit(&epochs, Epoch(1)).unwrap();
    commit(&epochs, Epoch(2)).unwrap();
    epochs.prune(0);
    assert_eq!(epochs.committed().unwrap(), [2].map(Epoch));
}

#[test]
fn a_directory_that_another_job_has_made_in_its_place_is_left_alone() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("d");
    fs::create_dir(&path).unwrap();
    let mine = epochs_in(&path);
    commit(&mine, Epoch(1)).unwrap();
    let part = mine.prepare(Epoch(2)).unwrap();
    let images = [written(&part, 0, 10)];
    // The directory is removed, and made again by another job with as many epochs.
    fs::rename(&path, root.path().join("removed")).unwrap();
    fs::create_dir(&path).unwrap();
    let theirs = epochs_in(&path);
    for epoch in (1..=4).map(Epoch) {
        commit(&theirs, epoch).unwrap();
    }
    theirs.prepare(Epoch(5)).unwrap();
    let before = theirs.directory.names().unwrap();
    let refused = |result: Result<PathBuf, EpochError>| {
        let error = result.unwrap_err().to_string();
        assert!(error.contains("and then replaced"), "{error}");
    };
    refused(mine.commit(Epoch(2), &images, &Description::default()));
    refused(mine.prepare(Epoch(2)));
    refused(mine.prepare(Epoch(5)));
    refused(mine.stage(Epoch(2), &images, &Description::default()));
    assert_eq!(mine.prune(1).len(), 1);
    mine.discard(Epoch(2)).unwrap();
    assert_eq!(theirs.directory.names().unwrap(), before);
    fs::remove_dir_all(&path).unwrap();
    let error = mine.prepare(Epoch(2)).unwrap_err().to_string();
    assert!(
        error.contains("moved or removed while the job ran"),
        "{error}"
    );
}

#[test]
fn the_mark_keeps_two_coordinators_parts_apart() {
    let directory = tempfile::tempdir().unwrap();
    let (one, other) = (epochs_in(directory.path()), epochs_in(directory.path()));
    assert_ne!(
        one.prepare(Epoch(3)).unwrap(),
        other.prepare(Epoch(3)).unwrap()
    );
    one.remove_parts().unwrap();
    assert!(one.directory.names().unwrap().is_empty());
}
