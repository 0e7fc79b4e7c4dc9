//! `stillpoint inspect`: the contents of an epoch.

mod changes;
mod gpu;

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use stillpoint_ids::Epoch;
use stillpoint_image::{Description, Manifest, Share, Sizes, inspect};

use stillpoint_protocol::safe_text::line;

use super::mpi::over;
use super::units::bytes;
use super::verify::{find, manifest};
use super::{CommandResult, Failure, print, print_json};
use stillpoint_coordinator::log::utc;

/// Show the content of an epoch: ranks, regions, objects, sizes, savings
///
/// With --json: {"manifest": ..., "images": [IMAGE...]}, one IMAGE for each rank.
#[derive(Debug, Args)]
pub struct Inspect {
    /// Checkpoint directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// Epoch [default: the newest]
    #[arg(long, env = "STILLPOINT_EPOCH", value_name = "K")]
    epoch: Option<Epoch>,

    /// Show every rank, mapped file and MPI object, not only the sums
    #[arg(long, short, env = "STILLPOINT_VERBOSE")]
    verbose: bool,

    /// Show every region: bytes mapped, touched, in pages that were written to, in changed blocks, and written
    #[arg(long, env = "STILLPOINT_REGIONS")]
    regions: bool,

    /// Print JSON
    #[arg(long, env = "STILLPOINT_JSON")]
    json: bool,
}

/// The output of `--json`.
#[derive(Serialize)]
struct Shown {
    manifest: Manifest,
    images: Vec<Description>,
}

impl Inspect {
    pub fn execute(self) -> CommandResult {
        let (epoch, path) = find(&self.directory, self.epoch)?;
        let failed = |error: stillpoint_image::ImageError| Failure::of(&error);
        let manifest = manifest(epoch, &path)?;
        let images: Vec<Description> = manifest
            .ranks
            .iter()
            .map(|entry| inspect(&path.join(&entry.file)))
            .collect::<Result<_, _>>()
            .map_err(failed)?;
        let shown = Shown { manifest, images };
        match self.json {
            true => print_json(&shown),
            false if self.regions => {
                print(&(shown.in_words() + &changes::by_region(&shown.images)))
            }
            false if self.verbose => print(&shown.in_words()),
            false => print(&shown.in_short()),
        }
    }
}

/// The most ranks in the short form.
const RANKS: usize = 4;

impl Shown {
    /// The sums, and the first ranks: at most 15 lines.
    fn in_short(&self) -> String {
        let mut text = self.head_in_words(RANKS);
        let more = self.images.len().saturating_sub(RANKS);
        if more > 0 {
            text.push_str(&format!("{:>6} {more} more ranks\n", "..."));
        }
        let details = self.sums_in_words() + &changes::in_words(&self.manifest, &self.images);
        let of_all = details.lines().filter(|line| !line.starts_with("rank "));
        of_all.for_each(|line| text.push_str(&format!("{line}\n")));
        let files = files_in_words(&self.images);
        let files = files.lines().count().saturating_sub(1);
        if files > 0 {
            text.push_str(&format!(
                "{files} mapped files that a restart needs unchanged\n"
            ));
        }
        text.push_str("-v shows every rank, file and MPI object\n");
        text
    }

    /// The facts about the epoch, and a row for each of the first ranks.
    fn head_in_words(&self, ranks: usize) -> String {
        let manifest = &self.manifest;
        let mut text = format!(
            "epoch {} of '{}' (job {}), committed {}\n  {}\n  {} ranks, {}, compression {}, Stillpoint {}\n",
            manifest.epoch,
            line(&manifest.name),
            line(&manifest.job),
            utc(manifest.committed),
            line(&manifest.command.join(" ")),
            manifest.ranks.len(),
            line(&over(&manifest.mpi, &manifest.library)),
            line(&manifest.compression),
            line(&manifest.stillpoint),
        );
        text.push_str(&format!(
            "{:>6} {:<16} {:>10} {:>10} {:>10} {:>7} {:>7} {:>7}\n",
            "RANK", "HOST", "ON DISK", "MEMORY", "MAPPED", "REGIONS", "THREADS", "FILES"
        ));
        for image in self.images.iter().take(ranks) {
            let sizes = &image.sizes;
            text.push_str(&format!(
                "{:>6} {:<16} {:>10} {:>10} {:>10} {:>7} {:>7} {:>7}\n",
                image.identity.rank,
                line(&image.environment.hostname),
                bytes(sizes.file_bytes),
                bytes(sizes.page_bytes),
                bytes(sizes.region_bytes),
                image.regions.len(),
                image.threads.len(),
                image.descriptors.numbers.len(),
            ));
        }
        text
    }

    fn in_words(&self) -> String {
        let manifest = &self.manifest;
        let mut text = self.head_in_words(self.images.len());
        text.push_str(&self.sums_in_words());
        text.push_str(&changes::in_words(manifest, &self.images));
        text.push_str(&files_in_words(&self.images));
        text.push_str(&gpu::in_words(&self.images));
        for image in &self.images {
            if let Some(objects) = in_words(&image.objects) {
                let objects = line(&objects);
                text.push_str(&format!("rank {}: {objects}\n", image.identity.rank));
            }
        }
        text
    }

    /// The sums over all images.
    fn sums_in_words(&self) -> String {
        let sum = |of: fn(&Sizes) -> u64| self.images.iter().map(|image| of(&image.sizes)).sum();
        let on_disk: u64 = sum(|sizes| sizes.file_bytes);
        let memory: u64 = sum(|sizes| sizes.page_bytes);
        let own: u64 = sum(|sizes| sizes.own_page_bytes);
        let mapped: u64 = sum(|sizes| sizes.region_bytes);
        let referred: u64 = sum(|sizes| sizes.referred_bytes);
        let mut text = format!(
            "{:>6} {:<16} {:>10} {:>10} {:>10}\n",
            "all",
            "",
            bytes(on_disk),
            bytes(memory),
            bytes(mapped)
        );
        text.push_str(&format!(
            "saved: {} never touched or zero, {} by compression, {} in unchanged mapped files\n",
            bytes(mapped.saturating_sub(memory).saturating_sub(referred)),
            bytes(own.saturating_sub(on_disk)),
            bytes(referred),
        ));
        text.push_str(&self.shared_in_words());
        let shares = self.images.iter().flat_map(|image| &image.carried);
        if let Some(carried) = carried_in_words(shares) {
            text.push_str(&format!(
                "{} written in this epoch, reused: {carried}\n",
                bytes(own)
            ));
            for image in &self.images {
                if let Some(carried) = carried_in_words(image.carried.iter()) {
                    text.push_str(&format!(
                        "rank {}: {} written in this epoch, reused: {carried}\n",
                        image.identity.rank,
                        bytes(image.sizes.own_page_bytes)
                    ));
                }
            }
        }
        text
    }
}

/// Bytes that were written once for several places in memory, of one rank or of several.
#[derive(Clone, Copy, Default)]
struct Equal {
    within: u64,
    across: u64,
}

impl Equal {
    fn of(image: &Description) -> Equal {
        let mut equal = Equal::default();
        for shared in &image.shared {
            match shared.rank == image.identity.rank {
                true => equal.within += shared.bytes,
                false => equal.across += shared.bytes,
            }
        }
        equal
    }

    fn in_words(self) -> String {
        format!(
            "{} equal to memory of the same rank, {} equal to memory of another rank",
            bytes(self.within),
            bytes(self.across)
        )
    }
}

impl Shown {
    /// Returns empty text if no bytes were shared.
    fn shared_in_words(&self) -> String {
        let by_rank = self.images.iter().map(|image| (image, Equal::of(image)));
        let some = by_rank.filter(|(image, _)| !image.shared.is_empty());
        let mut all = Equal::default();
        let mut lines = String::new();
        for (image, equal) in some {
            all.within += equal.within;
            all.across += equal.across;
            let rank = image.identity.rank;
            lines.push_str(&format!("rank {rank}: {}\n", equal.in_words()));
        }
        match lines.is_empty() {
            true => lines,
            false => format!("duplicates not written again: {}\n{lines}", all.in_words()),
        }
    }
}

/// The bytes that lie in images of earlier epochs, by epoch.
fn carried_in_words<'a>(shares: impl Iterator<Item = &'a Share>) -> Option<String> {
    let mut by_epoch: BTreeMap<Epoch, u64> = BTreeMap::new();
    for share in shares {
        *by_epoch.entry(share.epoch).or_default() += share.bytes;
    }
    let of = |(epoch, sum): (Epoch, u64)| format!("{} from epoch {epoch}", bytes(sum));
    let words: Vec<String> = by_epoch.into_iter().map(of).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// The mapped files that a restart needs, each once, with the bytes that the ranks leave to it.
fn files_in_words(images: &[Description]) -> String {
    let mut files: BTreeMap<&str, (u64, usize)> = BTreeMap::new();
    for file in images.iter().flat_map(|image| &image.mapped_files) {
        let sum = files.entry(&file.path).or_default();
        sum.0 += file.referred_bytes;
        sum.1 += 1;
    }
    if files.is_empty() {
        return String::new();
    }
    let lines = files.iter().map(|(path, (sum, ranks))| {
        format!("{:>10} in {ranks} ranks: {}\n", bytes(*sum), line(path))
    });
    let head =
        "mapped files that a restart needs unchanged, with the bytes that it takes from them:\n";
    std::iter::once(head.to_owned()).chain(lines).collect()
}

/// MPI objects by kind, with the number of each.
fn in_words(objects: &serde_json::Value) -> Option<String> {
    let kinds = objects.as_object()?;
    let counted: Vec<String> = kinds
        .iter()
        .filter_map(|(kind, value)| match value {
            serde_json::Value::Array(all) => Some(format!("{} {kind}", all.len())),
            serde_json::Value::Number(count) => Some(format!("{count} {kind}")),
            _ => None,
        })
        .collect();
    (!counted.is_empty()).then(|| counted.join(", "))
}
