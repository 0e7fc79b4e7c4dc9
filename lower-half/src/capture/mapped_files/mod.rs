//! Files that an image refers to. The image holds those pages of private mappings that the process has of its own, and a restart maps the
//! others from the file again (`restore/mapped_files.rs`, [docs/users/restart.md](../../../docs/users/restart.md)).
//!
//! Files are opened and read on the executor's thread, outside of the application, and never touched through the application's mapping. So
//! a file system that does not answer holds up only the checkpoint.

mod files;
mod lasting;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use stillpoint_faults::{Point, strike};
use stillpoint_image::format::vm_flags;
use stillpoint_image::mapped_files::{self, FileIdentity, Kept, MappedFiles, Referred, Sum};
use stillpoint_part::Kind;
use stillpoint_protocol::launch::{Launch, MappedFiles as How};
use stillpoint_tracking::pagemap::PageMap;

use super::access::Access;
use super::maps::Mapping;
use super::own_descriptor_table::apart;
use super::window_memory::Below;
use super::{CaptureError, memory};
use crate::arch::PAGE;
use crate::ground::page::Page;
use files::Found;
use lasting::Lasting;
use stillpoint_image::tables::RegionKind;

/// The payload of an image of a process with such mappings.
pub const KIND: Kind = Kind {
    name: mapped_files::NAME,
    version: mapped_files::VERSION,
    always: false,
};

/// The most stretches of own pages in one mapping; if there are more, neighbours are joined with the bytes between them.
const MOST_STRETCHES: usize = 1 << 16;

/// The setting of the launch.
static HOW: OnceLock<How> = OnceLock::new();
/// The time at which the job began.
static BEGUN: AtomicI64 = AtomicI64::new(0);
/// Sums that have been taken, so that files are not read again at every checkpoint.
static SUMS: Mutex<BTreeMap<Summed, Sum>> = Mutex::new(BTreeMap::new());

/// The key of a sum: a file at a certain time, and parts of it.
type Summed = (FileIdentity, Vec<(u64, u64)>);

/// Notes the settings of the launch, before the application runs.
pub fn remember(launch: &Launch) {
    HOW.get_or_init(|| launch.mapped_files);
    BEGUN.store(launch.begun, Ordering::Relaxed);
    lasting::remember();
}

/// Continues the job of an earlier launch, with the files that its image refers to.
pub fn carry_on(from: &MappedFiles) {
    BEGUN.fetch_min(from.begun, Ordering::Relaxed);
    let mut known = SUMS.lock().unwrap_or_else(PoisonError::into_inner);
    let summed = from.files.iter().filter_map(|file| {
        let sum = file.sum?;
        Some(((file.identity, file.mapped.clone()), sum))
    });
    known.extend(summed);
}

/// Returns the files that an image is to refer to, and the pages of private mappings of files that are the process's own. Every thread of the
/// upper half stands still.
///
/// # Errors
/// The process cannot be examined, or the checkpoint has been given up.
pub fn survey(
    access: &Access,
    page: Page,
    mappings: &[Mapping],
) -> Result<MappedFiles, CaptureError> {
    let how = HOW.get().copied().unwrap_or(How::Keep);
    strike(Point::CaptureMapped).map_err(CaptureError::process("mapped files"))?;
    let inside = access.enter()?;
    let below = Below::survey(mappings).map_err(CaptureError::process("memory map"))?;
    let begun = (how == How::Auto).then(|| BEGUN.load(Ordering::Relaxed));
    let lasting = (how != How::Keep).then(|| Lasting::new(begun, mappings));
    let candidates = candidates(mappings, &below, own_library(mappings, page));
    drop(inside);
    let look = || {
        let found = candidates.iter().map(|one| {
            let found = files::look(one, lasting.as_ref(), &SUMS, &|| !access.revoked())?;
            Some((found, one))
        });
        found.flatten().collect::<Vec<(Found, &Candidate<'_>)>>()
    };
    let found = apart(look).map_err(CaptureError::process("mapped files"))?;
    let mut files = MappedFiles {
        begun: BEGUN.load(Ordering::Relaxed),
        ..MappedFiles::default()
    };
    let _inside = access.enter()?;
    let mut pages = PageMap::open().map_err(CaptureError::process("page map"))?;
    for (file, candidate) in found {
        for mapping in &candidate.mappings {
            let own = pages
                .own(mapping.addresses())
                .map_err(CaptureError::process("page map"))?;
            let own = fewer(own, MOST_STRETCHES);
            let (start, end) = (mapping.start as u64, mapping.end as u64);
            match &file {
                Found::Refers(_) => {
                    let mut referred = Referred {
                        start,
                        end,
                        offset: mapping.offset,
                        file: files.files.len(),
                        own: Vec::new(),
                    };
                    referred.set_own(&own);
                    files.regions.push(referred);
                }
                Found::Keeps(bytes) => {
                    let mut kept = Kept {
                        start,
                        end,
                        bytes: *bytes,
                        own: Vec::new(),
                    };
                    kept.set_own(&own);
                    files.kept.push(kept);
                }
            }
        }
        if let Found::Refers(file) = file {
            files.files.push(file);
        }
    }
    files.regions.sort_by_key(|region| region.start);
    files.kept.sort_by_key(|region| region.start);
    Ok(files)
}

/// The end of the path of the library that every program preloads.
const PRELOADED: &str = "/libstillpoint_preload.so";

/// A file, as the process's mappings show it, and its private mappings.
struct Candidate<'a> {
    path: &'a str,
    device: u64,
    inode: u64,
    mappings: Vec<&'a Mapping>,
}

/// Returns the files that an image might refer to. Stillpoint's own libraries are not among them: another installation may have others in their places.
fn candidates<'a>(
    mappings: &'a [Mapping],
    below: &Below,
    own: Option<(u64, u64)>,
) -> Vec<Candidate<'a>> {
    let mut found: Vec<Candidate<'a>> = Vec::new();
    for mapping in mappings {
        let (device, inode) = (mapping.device, mapping.inode);
        let private =
            inode != 0 && !below.has(mapping) && memory::kind(mapping) == RegionKind::PrivateFile;
        let plain = mapping.vm_flags & (vm_flags::HUGE_TLB | vm_flags::GROWS_DOWN) == 0;
        let named = mapping.name.starts_with('/') && !mapping.deleted();
        let is_own = own == Some((device, inode)) || mapping.name.ends_with(PRELOADED);
        if !private || !plain || !named || is_own {
            continue;
        }
        let known = found
            .iter_mut()
            .rev()
            .find(|one| (one.device, one.inode) == (device, inode) && one.path == mapping.name);
        match known {
            Some(known) => known.mappings.push(mapping),
            None => found.push(Candidate {
                path: &mapping.name,
                device,
                inode,
                mappings: vec![mapping],
            }),
        }
    }
    found
}

impl Candidate<'_> {
    /// Returns the parts of the file that are mapped, in order; `bytes` is the file's length.
    fn mapped(&self, bytes: u64) -> Vec<(u64, u64)> {
        let part = |mapping: &&Mapping| {
            let end = mapping.offset.saturating_add(mapping.bytes() as u64);
            (mapping.offset, end.min(bytes))
        };
        let mut parts: Vec<(u64, u64)> = self.mappings.iter().map(part).collect();
        parts.retain(|(start, end)| start < end);
        parts.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for (start, end) in parts {
            match joined.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => joined.push((start, end)),
            }
        }
        joined
    }
}

/// Returns the file of the library of stubs: the one that holds the functions that it has registered.
fn own_library(mappings: &[Mapping], page: Page) -> Option<(u64, u64)> {
    let park = page.hooks()?.park? as *const () as usize;
    let holds = |mapping: &&Mapping| (mapping.start..mapping.end).contains(&park);
    let text = mappings.iter().find(holds)?;
    Some((text.device, text.inode))
}

/// Joins the nearest stretches until there are at most `most`.
fn fewer(mut stretches: Vec<Range<usize>>, most: usize) -> Vec<Range<usize>> {
    let mut gap = PAGE;
    while stretches.len() > most {
        let mut joined: Vec<Range<usize>> = Vec::with_capacity(most);
        for stretch in stretches {
            match joined.last_mut() {
                Some(last) if stretch.start - last.end <= gap => last.end = stretch.end,
                _ => joined.push(stretch),
            }
        }
        stretches = joined;
        gap *= 2;
    }
    stretches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_are_joined_until_they_are_few_enough_and_none_is_lost() {
        let page = |from: usize, to: usize| from * PAGE..to * PAGE;
        let own = vec![
            page(0, 1),
            page(2, 3),
            page(9, 10),
            page(12, 13),
            page(99, 100),
        ];
        assert_eq!(fewer(own.clone(), 5), own);
        assert_eq!(
            fewer(own.clone(), 4),
            [page(0, 3), page(9, 10), page(12, 13), page(99, 100)]
        );
        assert_eq!(
            fewer(own.clone(), 3),
            [page(0, 3), page(9, 13), page(99, 100)]
        );
        assert_eq!(fewer(own, 1), [page(0, 100)]);
    }

    #[test]
    fn what_is_mapped_of_a_file_is_joined_and_ends_with_the_file() {
        let mapping = |offset: u64, bytes: usize| Mapping {
            start: 0x10_0000,
            end: 0x10_0000 + bytes,
            offset,
            ..Mapping::default()
        };
        let mappings = [
            mapping(8192, 8192),
            mapping(0, 4096),
            mapping(4096, 8192),
            mapping(40960, 8192),
            mapping(65536, 4096),
        ];
        let candidate = Candidate {
            path: "/a",
            device: 1,
            inode: 1,
            mappings: mappings.iter().collect(),
        };
        assert_eq!(candidate.mapped(45000), [(0, 16384), (40960, 45000)]);
    }
}
