//! Tests of the manifest: it is read as it was written, and every fault in it, or in the images that it names, is noticed.

use std::path::Path;

use stillpoint_ids::{Epoch, Rank};
use stillpoint_image::manifest::NAME;
use stillpoint_image::{
    Compression, ImageError, Manifest, RankImage, epoch_name, epoch_of, image_name,
};
use stillpoint_incremental::tracking::Tracking;
use stillpoint_incremental::viability::{
    EpochMeasurement, Expected, OfDevices, Predicted, Rates, Record, Taken,
};

use crate::common;

fn write(directory: &Path) -> Manifest {
    let written = common::write(&directory.join(image_name(Rank(1))), Compression::Lz4);
    let image = |rank: Rank| RankImage {
        rank,
        file: image_name(rank),
        bytes: written.bytes,
        digest: written.digest,
        hostname: "node1".into(),
        increment: None,
    };
    let manifest = Manifest {
        job: "job".into(),
        name: "melt".into(),
        epoch: Epoch(3),
        committed: 1_700_000_000,
        command: vec!["app".into(), "naïve \"argument\"\n".into()],
        mpi: "openmpi".into(),
        library: "abi".into(),
        gate_version: 1,
        stillpoint: "0.1.0".into(),
        compression: "lz4".into(),
        needs: vec![],
        ranks: vec![image(Rank(0)), image(Rank(1))],
    };
    manifest.write(directory).unwrap();
    manifest
}

#[test]
fn what_is_written_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let manifest = write(directory.path());
    assert_eq!(Manifest::read(directory.path()).unwrap(), manifest);
    assert_eq!(
        manifest
            .open_image(directory.path(), Rank(1))
            .unwrap()
            .identity()
            .rank,
        Rank(1)
    );
}

#[test]
fn what_needs_nothing_says_nothing_of_it() {
    // Manifests of older releases, which could not need other epochs, are still read.
    let directory = tempfile::tempdir().unwrap();
    let manifest = write(directory.path());
    let text = std::fs::read_to_string(directory.path().join(NAME)).unwrap();
    assert!(!text.contains("needs"), "{text}");
    let needs = vec![Epoch(1), Epoch(2)];
    Manifest { needs, ..manifest }
        .write(directory.path())
        .unwrap();
    assert_eq!(
        Manifest::read(directory.path()).unwrap().needs,
        [Epoch(1), Epoch(2)]
    );
}

#[test]
fn what_the_model_said_is_read_again_and_was_not_said_before() {
    let directory = tempfile::tempdir().unwrap();
    let mut manifest = write(directory.path());
    let text = std::fs::read_to_string(directory.path().join(NAME)).unwrap();
    assert!(!text.contains("increment"), "{text}");
    let expected = |bytes: f64| Expected {
        seconds: bytes / 1e9,
        bytes,
    };
    let predicted = Predicted {
        rates: Rates::new(1e9, 4e9).unwrap(),
        alpha: Some(0.5),
        alpha_hashed: None,
        full: expected(4096.0),
        page: Some(expected(1024.0)),
        hash: None,
        taken: expected(1024.0),
    };
    let (regions, outcome) = (Taken::default(), EpochMeasurement::default());
    manifest.ranks[1].increment = Some(Record {
        tracking: Some(Tracking::WpAsync),
        predicted: Some(predicted),
        regions: Taken { page: 3, ..regions },
        outcome: EpochMeasurement {
            page_dirty: Some(1024),
            ..outcome
        },
        devices: Some(OfDevices {
            bytes: 1 << 30,
            by_gpus: 3 << 28,
            gpu_seconds: 0.125,
            by_processor: 1 << 28,
            processor_seconds: 0.5,
            came: 1 << 26,
            written: 1 << 25,
        }),
    });
    manifest.write(directory.path()).unwrap();
    assert_eq!(Manifest::read(directory.path()).unwrap(), manifest);
}

#[test]
fn names_lead_back_to_epochs() {
    assert_eq!(epoch_of(&epoch_name(Epoch(12))), Some(Epoch(12)));
    assert_eq!(
        epoch_of(&epoch_name(Epoch(12_345_678))),
        Some(Epoch(12_345_678))
    );
    for name in [
        "epoch-12",
        "epoch-000012.part",
        "epoch-00001x",
        "epoch-",
        "000012",
    ] {
        assert_eq!(epoch_of(name), None, "{name}");
    }
}

#[test]
fn any_change_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path());
    let path = directory.path().join(NAME);
    let sound = std::fs::read(&path).unwrap();
    for place in 0..sound.len() {
        let mut bytes = sound.clone();
        bytes[place] ^= 4;
        std::fs::write(&path, &bytes).unwrap();
        let error = Manifest::read(directory.path()).unwrap_err().to_string();
        assert!(
            error.starts_with(path.to_str().unwrap()) && !error.contains('\n'),
            "{place}: {error}"
        );
    }
    for end in 0..sound.len() {
        std::fs::write(&path, &sound[..end]).unwrap();
        assert!(Manifest::read(directory.path()).is_err(), "cut at {end}");
    }
    std::fs::write(&path, [sound.as_slice(), b"more"].concat()).unwrap();
    assert!(Manifest::read(directory.path()).is_err());
    std::fs::remove_file(&path).unwrap();
    let error = Manifest::read(directory.path()).unwrap_err().to_string();
    assert!(error.contains("choose another epoch"), "{error}");
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let manifest = write(directory.path());
    for file in ["../rank", "", "/etc/passwd", ".."] {
        let mut other = manifest.clone();
        other.ranks[1].file = file.into();
        other.write(directory.path()).unwrap();
        let error = Manifest::read(directory.path()).unwrap_err().to_string();
        assert!(error.contains("not a file name"), "{error}");
    }
    let mut other = manifest;
    other.ranks.swap(0, 1);
    other.write(directory.path()).unwrap();
    assert!(
        Manifest::read(directory.path())
            .unwrap_err()
            .to_string()
            .contains("at the position of rank 0")
    );
}

#[test]
fn another_image_than_the_one_meant_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let manifest = write(directory.path());
    let mut other = manifest.clone();
    other.ranks[1].digest ^= 1;
    assert!(matches!(
        other.open_image(directory.path(), Rank(1)),
        Err(ImageError::Digest { .. })
    ));
    let mut other = manifest.clone();
    other.epoch = Epoch(4);
    let error = other
        .open_image(directory.path(), Rank(1))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("identity") && error.contains("epoch 4"),
        "{error}"
    );
    let error = manifest
        .open_image(directory.path(), Rank(2))
        .unwrap_err()
        .to_string();
    assert!(error.contains("no rank 2"), "{error}");
    let error = manifest
        .open_image(directory.path(), Rank(0))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("rank-000000.img") && error.contains("choose another epoch"),
        "{error}"
    );
}
