//! Guard pages (`MADV_GUARD_INSTALL`, since Linux 6.13), which nothing may touch; newer C libraries put them below threads' stacks. They
//! are not mappings of their own and hold nothing. A load from one raises SIGSEGV.

use std::io;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use stillpoint_part::Kind;
use stillpoint_refusals::{Refusal, refusal};
use stillpoint_tracking::pagemap::PageMap;

use super::maps::Mapping;
use crate::arch::PAGE;
use crate::gate::memory::{self, MADV_GUARD_INSTALL};

/// The payload: JSON, [`Guarded`]. An image without guards has none.
pub const KIND: Kind = Kind {
    name: "guarded memory",
    version: 1,
    always: false,
};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guarded {
    /// Start and end of stretches of the upper half.
    pub ranges: Vec<(usize, usize)>,
}

/// Returns the guards in these mappings, in order of address.
///
/// # Errors
/// The kernel does not report guards.
pub fn survey(mappings: &[Mapping]) -> io::Result<Vec<Range<usize>>> {
    if !memory::may_be_guarded() {
        return Ok(Vec::new());
    }
    let pages = PageMap::open()?;
    let mut found = Vec::new();
    for mapping in mappings {
        found.extend(pages.guarded(mapping.addresses())?);
    }
    Ok(found)
}

/// Returns the reason why guards cannot be carried, if there may be any.
pub fn hinders() -> Option<Refusal> {
    if !memory::may_be_guarded() {
        return None;
    }
    let error = PageMap::open()
        .and_then(|pages| pages.guarded(0..PAGE))
        .err()?;
    Some(refusal!(
        GuardedPages,
        "it has guarded pages (MADV_GUARD_INSTALL), and this kernel does not tell which pages they are: Linux 6.16 does ({error})"
    ))
}

/// Returns the reason why this kernel has no guards, if it has none.
pub fn lacks() -> Option<String> {
    let both = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: the kernel chooses a free address for the page, and nothing touches it.
    let probe = unsafe { libc::mmap(std::ptr::null_mut(), PAGE, both, flags, -1, 0) };
    if probe == libc::MAP_FAILED {
        return Some(io::Error::last_os_error().to_string());
    }
    let installed = install(&(probe as usize..probe as usize + PAGE)).err();
    // SAFETY: this unmaps exactly the page that was mapped above, which nothing else uses.
    unsafe { libc::munmap(probe, PAGE) };
    installed.map(|error| error.to_string())
}

fn install(range: &Range<usize>) -> io::Result<()> {
    // SAFETY: the pages hold nothing, and nothing may touch them: they had guards in the image, or are the probe's own.
    match unsafe { libc::madvise(range.start as *mut _, range.len(), MADV_GUARD_INSTALL) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

impl Guarded {
    /// Makes the guards again.
    ///
    /// # Errors
    /// The kernel makes none there.
    pub fn restore(&self) -> Result<(), Refusal> {
        memory::are_guarded();
        for (start, end) in &self.ranges {
            install(&(*start..*end)).map_err(|error| {
                refusal!(KernelFeature, "cannot guard the pages {start:#x}..{end:#x}, as they were (MADV_GUARD_INSTALL): {error}")
            })?;
        }
        Ok(())
    }
}
