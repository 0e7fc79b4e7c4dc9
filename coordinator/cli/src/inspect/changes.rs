//! The memory that was touched, written to, changed and written to the image, beside the model's prediction.

use stillpoint_image::{Description, Manifest, RegionBytes};
use stillpoint_incremental::viability::{Expected, Record, Taken};
use stillpoint_multilevel::units::show_seconds;

use stillpoint_protocol::safe_text::line;

use crate::units::bytes;

/// The sums over all images, and the model's prediction for each image.
pub fn in_words(manifest: &Manifest, images: &[Description]) -> String {
    let mapped = images.iter().map(|image| image.sizes.region_bytes).sum();
    let known: Option<Vec<RegionBytes>> = images.iter().map(|image| image.bytes).collect();
    let sum = known.as_ref().and_then(RegionBytes::sum);
    let mut text = format!("memory: {}\n", words(mapped, sum));
    for rank in &manifest.ranks {
        if let Some(record) = &rank.increment {
            text += &format!("rank {}: {}\n", rank.rank, said(record));
        }
    }
    text
}

fn words(mapped: u64, found: Option<RegionBytes>) -> String {
    let Some(found) = found else {
        return format!(
            "{} mapped; the touched and the written parts are unknown",
            bytes(mapped)
        );
    };
    let unknown = || "an unknown part".to_owned();
    format!(
        "{} mapped, {} touched, {} page-dirty, {} hash-dirty of {} hashed, {} written",
        bytes(mapped),
        bytes(found.touched),
        found.page_dirty.map_or_else(unknown, bytes),
        bytes(found.hash_dirty),
        bytes(found.hashed),
        bytes(found.written),
    )
}

/// The prediction for a rank's image, and the result.
fn said(record: &Record) -> String {
    let Record {
        tracking,
        predicted,
        regions,
        outcome,
        devices,
    } = record;
    let way = |way: &Expected| {
        let size = bytes(way.bytes as u64);
        format!("{size} in {}", show_seconds(way.seconds))
    };
    let came = Expected {
        seconds: outcome.seconds(),
        bytes: outcome.written as f64,
    };
    let devices = devices.map_or(String::new(), |of| {
        format!(
            "; of {} of GPUs {} hashed there, {} came, {} written",
            bytes(of.bytes),
            bytes(of.by_gpus),
            bytes(of.came),
            bytes(of.written)
        )
    });
    let Some(predicted) = predicted else {
        return format!("full; {} written{devices}", way(&came));
    };
    let Taken {
        full, page, hash, ..
    } = regions;
    let tracking = tracking.map_or(String::new(), |tracking| format!("tracking {tracking}; "));
    format!(
        "{tracking}regions: {full} full, {page} page-based, {hash} hash-based; expected {}, came to {}{devices}",
        way(&predicted.taken),
        way(&came)
    )
}

/// One line for each region.
pub fn by_region(images: &[Description]) -> String {
    let mut text = String::new();
    for image in images {
        text += &format!(
            "regions of rank {}:\n{:>12} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}  NAME\n",
            image.identity.rank,
            "ADDRESS",
            "MAPPED",
            "TOUCHED",
            "PAGE-DIRTY",
            "HASHED",
            "HASH-DIRTY",
            "WRITTEN",
        );
        for region in &image.regions {
            let (mapped, name) = (region.region.bytes(), &region.region.name);
            let start = format!("{:x}", region.region.start);
            text += &row(&start, mapped, region.bytes, &line(name));
        }
        text += &row("all", image.sizes.region_bytes, image.bytes, "");
    }
    text
}

fn row(first: &str, mapped: u64, found: Option<RegionBytes>, name: &str) -> String {
    let shown = |number: Option<u64>| number.map_or("unknown".to_owned(), bytes);
    let [touched, page_dirty, hashed, hash_dirty, written] = [
        found.map(|found| found.touched),
        found.and_then(|found| found.page_dirty),
        found.map(|found| found.hashed),
        found.map(|found| found.hash_dirty),
        found.map(|found| found.written),
    ]
    .map(shown);
    let mapped = bytes(mapped);
    let row = format!(
        "{first:>12} {mapped:>10} {touched:>10} {page_dirty:>10} {hashed:>10} {hash_dirty:>10} {written:>10}  {name}"
    );
    row.trim_end().to_owned() + "\n"
}
