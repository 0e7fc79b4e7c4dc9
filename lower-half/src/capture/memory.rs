//! The upper half's memory: its mappings, and the bytes of them that an image must hold.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;

use stillpoint_image::Region;
use stillpoint_image::mapped_files::{MappedFiles, Referred};
use stillpoint_image::tables::RegionKind;
use stillpoint_tracking::pagemap::PageMap;

use super::contents::{Contents, FileKey, data};
use super::guarded;
use super::maps::{self, Mapping};
use super::reading::{self, Loadable};
use super::segments::Segment;
use super::window_memory::Below;
use crate::arch::PAGE;
use crate::gate::memory::held;
use crate::ground::ranges;

/// The text behind the name of a System V segment that is marked for removal.
pub const REMOVED: &str = " removed";

/// Returns the kind of region that a mapping becomes.
pub fn kind(mapping: &Mapping) -> RegionKind {
    if !mapping.shared {
        return if mapping.inode == 0 {
            RegionKind::Anonymous
        } else {
            RegionKind::PrivateFile
        };
    }
    if mapping.path().starts_with("/SYSV") && mapping.path().len() == 13 {
        return RegionKind::SystemV;
    }
    let named = std::fs::metadata(mapping.path()).is_ok_and(|file| {
        !mapping.deleted() && file.dev() == mapping.device && file.ino() == mapping.inode
    });
    if named {
        RegionKind::SharedFile
    } else {
        RegionKind::SharedAnonymous
    }
}

/// The upper half's memory, ready to be written.
#[derive(Default)]
pub struct Memory {
    pub regions: Vec<Region>,
    /// Private memory to write.
    pub private: Vec<Range<usize>>,
    /// Mappings that were made readable for a while.
    pub opened: Opened,
    /// The memory that can be loaded.
    pub loadable: Loadable,
}

/// Mappings that are readable until this is dropped, with their own protection: start, length, protection.
#[derive(Default)]
pub struct Opened(Vec<(usize, usize, i32)>);

impl Memory {
    /// Looks at every mapping, finds out what to write, and makes unreadable memory readable. `in_files` names the mappings whose other
    /// bytes are in files.
    ///
    /// # Safety
    /// Every thread of the upper half must be stopped, until [`Memory::opened`] is dropped.
    pub unsafe fn survey(
        mappings: &[Mapping],
        in_files: &MappedFiles,
        contents: &mut Contents,
    ) -> io::Result<Memory> {
        let mut memory = Memory::default();
        let mut pages = PageMap::open()?;
        let below = Below::survey(mappings)?;
        let mut file_kinds = HashMap::new();
        let mut referred = 0;
        let guards = guarded::survey(mappings)?;
        let (mut plain, mut away) = (Vec::new(), Vec::new());
        for mapping in mappings {
            if below.has(mapping) {
                memory.add_window(mapping, &guards, &mut pages)?;
                continue;
            }
            let kind = match mapping.inode {
                0 => kind(mapping),
                _ => *file_kinds
                    .entry((mapping.device, mapping.inode, mapping.shared))
                    .or_insert_with(|| kind(mapping)),
            };
            let mut region = Region {
                start: mapping.start as u64,
                end: mapping.end as u64,
                protection: mapping.protection as u32,
                kind,
                vm_flags: mapping.vm_flags,
                file_offset: mapping.offset,
                name: mapping.path().to_owned(),
                content: None,
            };
            match kind {
                RegionKind::Anonymous => {
                    let touched = match mapping.present {
                        0 => vec![],
                        _ => pages.touched_and_away(mapping.addresses(), &mut away)?,
                    };
                    let touched = without(touched, &guards);
                    plain.extend(touched.iter().cloned());
                    if !touched.is_empty() {
                        memory.private.extend(touched);
                        memory.open(mapping)?;
                    }
                }
                RegionKind::PrivateFile => {
                    // At a restart there may be another file under its old name.
                    region.name.clone_from(&mapping.name);
                    match in_files.referred(&region) {
                        Some(found) => {
                            referred += 1;
                            memory.add_own(mapping, found, &guards)?;
                        }
                        None => memory.add_whole(mapping, &guards)?,
                    }
                }
                RegionKind::SharedFile | RegionKind::SharedAnonymous | RegionKind::SystemV => {
                    if mapping.may_write || kind != RegionKind::SharedFile {
                        memory.open(mapping)?;
                        let stretches = shared_stretches(mapping, kind, &guards, &mut pages)?;
                        let key = FileKey {
                            device: mapping.device,
                            inode: mapping.inode,
                        };
                        let end = shared_end(mapping, kind)?;
                        let stretches = stretches.into_iter().map(|range| {
                            ((range.start - mapping.start) as u64 + mapping.offset, range)
                        });
                        let name = if kind == RegionKind::SystemV {
                            format!("{} {}", mapping.path(), mapping.inode)
                        } else {
                            mapping.path().to_owned()
                        };
                        region.content = Some(contents.add_mapped(key, &name, end, stretches));
                    }
                    if region.kind == RegionKind::SystemV {
                        region.name = format!("{} {}", mapping.path(), mapping.inode);
                        if Segment::of(mapping.inode as libc::c_int).is_none_or(|it| it.goes) {
                            // `/proc/self/maps` shows all segments as deleted.
                            region.name.push_str(REMOVED);
                        }
                    }
                }
            }
            memory.regions.push(region);
        }
        memory.loadable = Loadable::new(without(ranges::joined(plain), &ranges::joined(away)));
        match referred == in_files.regions.len() {
            true => Ok(memory),
            // No thread is running that could have changed it.
            false => Err(io::Error::other("the memory map has changed meanwhile")),
        }
    }

    /// Adds a private mapping of a file, of which the image holds every byte.
    fn add_whole(&mut self, mapping: &Mapping, guards: &[Range<usize>]) -> io::Result<()> {
        self.open(mapping)?;
        let part = readable(&mapping.addresses(), guards)?;
        self.private.extend(part);
        Ok(())
    }

    /// Adds a mapping whose bytes are in the file, except for the process's own pages.
    fn add_own(
        &mut self,
        mapping: &Mapping,
        referred: &Referred,
        guards: &[Range<usize>],
    ) -> io::Result<()> {
        if !referred.own.is_empty() {
            self.open(mapping)?;
        }
        let own = referred.own();
        let own = own.map(|range| range.start as usize..range.end as usize);
        self.private.extend(without(own.collect(), guards));
        Ok(())
    }

    /// Adds memory of a window, as if it belonged to this process alone. Its bytes are added only if this image is to hold them.
    fn add_window(
        &mut self,
        mapping: &Mapping,
        guards: &[Range<usize>],
        pages: &mut PageMap,
    ) -> io::Result<()> {
        let held = held(mapping.addresses());
        if !held.is_empty() {
            self.open(mapping)?;
            let kind = RegionKind::SharedAnonymous;
            let stretches = shared_stretches(mapping, kind, guards, pages)?;
            self.private.extend(ranges::split(&stretches, &held).0);
        }
        self.regions.push(Region {
            start: mapping.start as u64,
            end: mapping.end as u64,
            protection: mapping.protection as u32,
            kind: RegionKind::Anonymous,
            vm_flags: mapping.vm_flags,
            file_offset: 0,
            name: String::new(),
            content: None,
        });
        Ok(())
    }

    /// Makes a mapping readable until the survey is dropped.
    fn open(&mut self, mapping: &Mapping) -> io::Result<()> {
        if mapping.protection & libc::PROT_READ != 0 {
            return Ok(());
        }
        protect(
            mapping.start,
            mapping.bytes(),
            mapping.protection | libc::PROT_READ,
        )?;
        let before = (mapping.start, mapping.bytes(), mapping.protection);
        self.opened.0.push(before);
        Ok(())
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        for (start, bytes, protection) in self.0.drain(..) {
            // The kernel can refuse the mapping's own protection only for lack of memory, and then there is nothing to be done about it.
            let _ = protect(start, bytes, protection);
        }
    }
}

fn protect(start: usize, bytes: usize, protection: i32) -> io::Result<()> {
    // SAFETY: the range is a mapping of the upper half, whose threads are stopped; reading is added to its own protection, or taken back.
    match unsafe { libc::mprotect(start as *mut _, bytes, protection) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Removes the pages that nothing may touch from the stretches; both are in order.
fn without(stretches: Vec<Range<usize>>, guards: &[Range<usize>]) -> Vec<Range<usize>> {
    match guards.is_empty() {
        true => stretches,
        false => ranges::split(&stretches, guards).1,
    }
}

/// Returns the readable parts of a mapping of a file: it has no pages behind the end of the file.
fn readable(range: &Range<usize>, guards: &[Range<usize>]) -> io::Result<Vec<Range<usize>>> {
    let parts = without(vec![range.clone()], guards).into_iter();
    let cut = parts.map(|part| Ok(part.start..readable_end(&part)?));
    let cut: io::Result<Vec<Range<usize>>> = cut.collect();
    Ok(ranges::joined(cut?))
}

/// Returns the end of the readable part of a range that only a file's end can cut.
fn readable_end(range: &Range<usize>) -> io::Result<usize> {
    let process = std::process::id() as usize;
    let readable = |page: usize| -> io::Result<bool> {
        let mut byte = 0u8;
        let at = range.start + page * PAGE;
        // SAFETY: `byte` is this function's.
        match unsafe { reading::by_kernel(process, at, &raw mut byte, 1) } {
            1 => Ok(true),
            error if error == -(libc::EFAULT as isize) => Ok(false),
            error => Err(io::Error::from_raw_os_error(-error as i32)),
        }
    };
    let pages = range.len() / PAGE;
    if readable(pages - 1)? {
        return Ok(range.end);
    }
    // Page `low - 1` can be read, page `high` cannot.
    let (mut low, mut high) = (0, pages - 1);
    while low < high {
        let middle = (low + high) / 2;
        if readable(middle)? {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(range.start + low * PAGE)
}

/// Returns the length of a shared object, as far as this mapping shows it.
fn shared_end(mapping: &Mapping, kind: RegionKind) -> io::Result<u64> {
    let mapped = mapping.offset + mapping.bytes() as u64;
    match kind {
        RegionKind::SharedFile => Ok(std::fs::metadata(mapping.path())?.len()),
        _ => Ok(mapped),
    }
}

/// Returns the addresses of a shared mapping whose bytes must be kept.
fn shared_stretches(
    mapping: &Mapping,
    kind: RegionKind,
    guards: &[Range<usize>],
    pages: &mut PageMap,
) -> io::Result<Vec<Range<usize>>> {
    if kind == RegionKind::SharedFile {
        let file = File::open(mapping.path())?;
        let mapped = mapping.offset..mapping.offset + mapping.bytes() as u64;
        let mut stretches = Vec::new();
        for range in data(&file, mapped)? {
            let at = |offset: u64| mapping.start + (offset - mapping.offset) as usize;
            stretches.push(at(range.start.max(mapping.offset))..at(range.end));
        }
        return Ok(without(stretches, guards));
    }
    if mapping.swapped > 0 {
        return readable(&mapping.addresses(), guards);
    }
    let mut found = pages.touched(mapping.addresses())?;
    found.extend(cached(mapping)?);
    // Only the details of a mapping show that a page of shared memory is swapped out.
    if maps::may_have_swapped() {
        return readable(&mapping.addresses(), guards);
    }
    Ok(without(ranges::joined(found), guards))
}

/// Returns the pages of shared memory that exist without being in this process's page table.
fn cached(mapping: &Mapping) -> io::Result<Vec<Range<usize>>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut resident = vec![0u8; (1 << 16).min(mapping.bytes() / PAGE)];
    let mut at = mapping.start;
    while at < mapping.end {
        let pages = resident.len().min((mapping.end - at) / PAGE);
        // SAFETY: the vector has a byte for each page that is asked about; the kernel refuses pages that are not mapped.
        if unsafe { libc::mincore(at as *mut _, pages * PAGE, resident.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        for page in resident.iter().take(pages) {
            if page & 1 != 0 {
                match found.last_mut() {
                    Some(last) if last.end == at => last.end += PAGE,
                    _ => found.push(at..at + PAGE),
                }
            }
            at += PAGE;
        }
    }
    Ok(found)
}
