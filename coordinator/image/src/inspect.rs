//! `stillpoint verify` and `stillpoint inspect`: read every byte; describe the contents.

use std::path::Path;

use serde::Serialize;

use crate::changes::{self, RegionBytes};
use crate::descriptors::Descriptors;
use crate::error::ImageError;
use crate::facts::{Environment, Identity};
use crate::mapped_files::MappedFiles;
use crate::origins::{Share, SiblingShare};
use crate::reader::Reader;
use crate::tables::{Region, thread_flags};

/// The name of the blob in which the lower half describes GPUs.
const GPU: &str = "gpu";

/// The result of [`verify`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    pub identity: Identity,
    /// The file's length.
    pub bytes: u64,
    pub digest: u128,
    /// Bytes of pages in the image, before compression.
    pub page_bytes: u64,
    pub regions: usize,
    pub threads: usize,
    pub chunks: usize,
    /// The files that the image refers to.
    pub mapped_files: MappedFiles,
}

/// Reads every byte of an image and checks every sum, on `threads` threads.
pub fn verify(path: &Path, threads: usize) -> Result<Summary, ImageError> {
    verify_opened(&Reader::open(path)?, threads)
}

/// Does the same for an image whose tables have been checked already.
pub fn verify_opened(reader: &Reader, threads: usize) -> Result<Summary, ImageError> {
    reader.check_pages(threads)?;
    let mapped_files = mapped_files(reader)?;
    Ok(Summary {
        mapped_files,
        identity: reader.identity().clone(),
        bytes: reader.file_bytes(),
        digest: reader.digest(),
        page_bytes: reader.tables().page_bytes(),
        regions: reader.regions().len(),
        threads: reader.threads().len(),
        chunks: reader.chunks().len(),
    })
}

fn mapped_files(reader: &Reader) -> Result<MappedFiles, ImageError> {
    MappedFiles::of(reader).map_err(|problem| ImageError::Malformed {
        path: reader.path().to_owned(),
        offset: 0,
        field: "mapped files".into(),
        problem,
    })
}

/// A description of an image's contents, for people and scripts.
#[derive(Clone, Debug, Serialize)]
pub struct Description {
    pub identity: Identity,
    pub environment: Environment,
    pub sizes: Sizes,
    /// The shares of images of earlier epochs, the oldest first.
    pub carried: Vec<Share>,
    /// The shares of images of the same epoch, its own included, in chunks not written for this image, by rank.
    pub shared: Vec<SiblingShare>,
    pub regions: Vec<RegionDescription>,
    /// The bytes of all regions together; null if the image has no such numbers.
    pub bytes: Option<RegionBytes>,
    /// Files that a restart needs unchanged.
    pub mapped_files: Vec<FileDescription>,
    pub threads: Vec<ThreadDescription>,
    pub descriptors: Descriptors,
    /// The MPI objects alive, as the upper half describes them; null if it did not describe any.
    pub objects: serde_json::Value,
    /// Memory of devices, whose bytes are pages of the image.
    pub devices: Vec<DeviceDescription>,
    /// The rank's GPUs, and how their memory was staged, as the lower half describes them; null if the rank used none.
    pub gpu: serde_json::Value,
    pub blobs: Vec<BlobDescription>,
}

/// A device's memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceDescription {
    pub uuid: String,
    pub bytes: u64,
    /// Bytes that lie in images of earlier epochs.
    pub carried: u64,
}

/// One mapping.
#[derive(Clone, Debug, Serialize)]
pub struct RegionDescription {
    #[serde(flatten)]
    pub region: Region,
    /// The bytes of it that were touched, written to and written down; null if the image has no such numbers.
    pub bytes: Option<RegionBytes>,
}

/// The sizes of an image's parts.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Sizes {
    /// The file's length.
    pub file_bytes: u64,
    /// Address space of all regions.
    pub region_bytes: u64,
    /// Pages in the image, before compression, carried ones too; the rest is zero or was never touched.
    pub page_bytes: u64,
    /// Pages in the file itself, before compression.
    pub own_page_bytes: u64,
    /// Pages in the file itself, as stored.
    pub stored_page_bytes: u64,
    /// Bytes that are left to mapped files.
    pub referred_bytes: u64,
}

/// A file that holds bytes of regions in the image's place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileDescription {
    pub path: String,
    /// The file's length.
    pub bytes: u64,
    /// The time of its last modification, in seconds since 1970.
    pub modified: i64,
    /// Whether a restart can compare the file's contents with those at the checkpoint.
    pub summed: bool,
    /// Bytes that all its regions leave to the file.
    pub referred_bytes: u64,
    pub regions: Vec<ReferredDescription>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReferredDescription {
    pub start: u64,
    pub end: u64,
    /// Bytes that are left to the file; the rest is in the image, or zero, or behind the file's end.
    pub referred_bytes: u64,
}

/// Describes mapped files, each with its regions.
fn describe(files: &MappedFiles) -> Vec<FileDescription> {
    let described = files.files.iter().enumerate().map(|(number, file)| {
        let referred = files.regions.iter().filter(|one| one.file == number);
        let regions: Vec<_> = referred
            .map(|one| ReferredDescription {
                start: one.start,
                end: one.end,
                referred_bytes: files.bytes_in_file(one),
            })
            .collect();
        FileDescription {
            path: file.path.clone(),
            bytes: file.identity.bytes,
            modified: file.identity.modified.div_euclid(1_000_000_000),
            summed: file.sum.is_some(),
            referred_bytes: regions.iter().map(|one| one.referred_bytes).sum(),
            regions,
        }
    });
    described.collect()
}

#[derive(Clone, Debug, Serialize)]
pub struct ThreadDescription {
    pub tid: u32,
    pub name: String,
    pub main: bool,
    pub driver: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct BlobDescription {
    pub name: String,
    pub version: u32,
    pub bytes: usize,
}

/// Describes an image's contents without reading page data.
pub fn inspect(path: &Path) -> Result<Description, ImageError> {
    let reader = Reader::open(path)?;
    let threads = reader.threads().iter().map(|thread| ThreadDescription {
        tid: thread.virtual_tid,
        name: String::from_utf8_lossy(&thread.name)
            .trim_end_matches('\0')
            .to_owned(),
        main: thread.flags & thread_flags::MAIN != 0,
        driver: thread.flags & thread_flags::DRIVER != 0,
    });
    let blobs = reader.blobs().iter().map(|blob| BlobDescription {
        name: blob.name.clone(),
        version: blob.version,
        bytes: blob.bytes.len(),
    });
    let mapped_files = describe(&mapped_files(&reader)?);
    let known = changes::of(&reader).map_err(|problem| ImageError::Malformed {
        path: reader.path().to_owned(),
        offset: 0,
        field: "bytes by region".into(),
        problem,
    })?;
    let regions = reader.regions().iter().enumerate();
    let regions = regions.map(|(index, region)| RegionDescription {
        region: region.clone(),
        bytes: known.as_ref().and_then(|known| known.get(index).copied()),
    });
    let own = reader.chunks().iter().filter(|chunk| chunk.origin == 0);
    Ok(Description {
        identity: reader.identity().clone(),
        environment: reader.environment().clone(),
        sizes: Sizes {
            file_bytes: reader.file_bytes(),
            region_bytes: reader.regions().iter().map(Region::bytes).sum(),
            page_bytes: reader.tables().page_bytes(),
            own_page_bytes: own.clone().map(|chunk| u64::from(chunk.bytes)).sum(),
            stored_page_bytes: own.map(|chunk| u64::from(chunk.stored_bytes)).sum(),
            referred_bytes: mapped_files.iter().map(|file| file.referred_bytes).sum(),
        },
        carried: reader.tables().shares(),
        shared: reader.tables().shared(),
        regions: regions.collect(),
        bytes: known.as_ref().and_then(RegionBytes::sum),
        mapped_files,
        threads: threads.collect(),
        descriptors: reader.descriptors().clone(),
        objects: serde_json::from_slice(reader.inventory()).unwrap_or_default(),
        devices: reader
            .devices()
            .iter()
            .map(|device| DeviceDescription {
                uuid: device.uuid.to_string(),
                bytes: reader.device_bytes(device),
                carried: reader.carried_device_bytes(device),
            })
            .collect(),
        gpu: reader
            .blob(GPU)
            .and_then(|blob| serde_json::from_slice(&blob.bytes).ok())
            .unwrap_or_default(),
        blobs: blobs.collect(),
    })
}
