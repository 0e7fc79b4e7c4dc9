//! Tests of the file as a whole: missing, of another kind, cut off, changed anywhere.

use std::path::Path;

use stillpoint_image::format::{OLDEST_VERSION, SectionKind, VERSION};
use stillpoint_image::{ImageError, verify};

use super::carried::carrying;
use super::{Sample, sample, says};
use crate::common::patch::Patch;

#[test]
fn a_missing_file() {
    let error = verify(Path::new("/nowhere/rank-000000.img"), 1)
        .unwrap_err()
        .to_string();
    says(
        &error,
        &["/nowhere/rank-000000.img", "choose another epoch"],
    );
}

#[test]
fn something_that_is_no_file() {
    assert!(matches!(
        verify(Path::new("/dev"), 1),
        Err(ImageError::Io { .. })
    ));
}

#[test]
fn another_files_bytes() {
    let sample = sample();
    assert!(matches!(
        sample.error(b"\x7fELF and so on, longer than a header, much longer than a header, yes"),
        ImageError::NotOurs { .. }
    ));
    assert!(matches!(
        sample.error(b"#!/bin/sh\n"),
        ImageError::NotOurs { .. }
    ));
}

#[test]
fn an_empty_file() {
    assert!(matches!(
        sample().error(b""),
        ImageError::Truncated { found: 0, .. }
    ));
}

#[test]
fn another_version() {
    let text =
        sample().changed(|patch| patch.change_header(|header| header.version = OLDEST_VERSION - 1));
    says(&text, &[&format!("format version {}", OLDEST_VERSION - 1)]);
    let text = sample().changed(|patch| patch.change_header(|header| header.version = VERSION + 1));
    says(
        &text,
        &[
            "offset 8",
            &format!("format version {}", VERSION + 1),
            &format!("reads versions {OLDEST_VERSION} to {VERSION}"),
            "use the Stillpoint release",
        ],
    );
}

#[test]
fn the_version_before() {
    // The image carries no chunks, so images of both versions differ in the number alone.
    let sample = sample();
    let mut patch = Patch {
        bytes: sample.bytes.clone(),
    };
    patch.change_header(|header| header.version = OLDEST_VERSION);
    std::fs::write(&sample.path, &patch.bytes).unwrap();
    verify(&sample.path, 1).unwrap();
    let text =
        carrying().changed(|patch| patch.change_header(|header| header.version = OLDEST_VERSION));
    says(&text, &["section kind", "13 is unknown"]);
}

#[test]
fn another_byte_order() {
    let text = sample().changed(|patch| {
        patch.change_header(|header| header.byte_order = header.byte_order.swap_bytes())
    });
    says(&text, &["offset 12", "other byte order"]);
}

#[test]
fn a_nonsensical_byte_order() {
    says(
        &sample().changed(|patch| patch.change_header(|header| header.byte_order = 7)),
        &["byte order"],
    );
}

#[test]
fn cut_off_anywhere() {
    let sample = sample();
    let table = Patch {
        bytes: sample.bytes.clone(),
    }
    .table();
    let mut ends: Vec<usize> = table.iter().map(|record| record.offset as usize).collect();
    ends.extend([
        0,
        1,
        7,
        8,
        63,
        64,
        65,
        sample.bytes.len() - 24,
        sample.bytes.len() - 1,
    ]);
    for end in ends {
        let error = sample.error(&sample.bytes[..end]);
        assert!(
            matches!(error, ImageError::Truncated { .. }),
            "cut at {end}: {error}"
        );
        says(&error.to_string(), &["truncated", "use another epoch"]);
    }
}

#[test]
fn bytes_behind_the_end() {
    let sample = sample();
    let mut bytes = sample.bytes.clone();
    bytes.push(0);
    says(&sample.error(&bytes).to_string(), &["1 bytes too many"]);
}

#[test]
fn one_bit_flipped_anywhere() {
    flipped_anywhere(&sample());
    flipped_anywhere(&carrying());
}

fn flipped_anywhere(sample: &Sample) {
    // Every byte of the small sections; page data at a stride that meets every chunk many times.
    let data_end = Patch {
        bytes: sample.bytes.clone(),
    }
    .section(SectionKind::PageData)
    .1;
    let data_end = (data_end.offset + data_end.bytes) as usize;
    let places = (0..64)
        .chain((64..data_end).step_by(101))
        .chain(data_end..sample.bytes.len());
    for (count, place) in places.enumerate() {
        let mut bytes = sample.bytes.clone();
        bytes[place] ^= 1 << (count % 8);
        let text = sample.error(&bytes).to_string();
        assert!(
            text.starts_with(sample.path.to_str().unwrap()),
            "byte {place}: {text}"
        );
    }
}
