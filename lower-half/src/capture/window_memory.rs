//! Memory that the real MPI provides for a window.
//!
//! If it is shared, the library in the upper half has mapped it a second time, and in a restart it maps the new memory there
//! (`upper-half/src/windows/memory.rs`). So an image has it as memory that is not shared. Bytes in another member's image are
//! left out (`gate::memory::held`).

use std::collections::HashSet;
use std::io;

use stillpoint_wrappers::gate::is_upper;

use super::maps::{self, Mapping};

/// Files that the lower half has mapped shared and writable: device and inode.
pub struct Below(HashSet<(u64, u64)>);

impl Below {
    /// Finds them, if any of the application's mappings might be window memory.
    pub fn survey(mappings: &[Mapping]) -> io::Result<Below> {
        if !mappings.iter().any(may_be) {
            return Ok(Below(HashSet::new()));
        }
        let all = maps::without_details()?;
        let below = all.iter().filter(|it| {
            let is_written = it.protection & libc::PROT_WRITE != 0;
            it.shared && is_written && it.inode != 0 && !is_upper(it.start)
        });
        Ok(Below(below.map(|it| (it.device, it.inode)).collect()))
    }

    /// Returns whether the mapping is window memory.
    pub fn has(&self, mapping: &Mapping) -> bool {
        may_be(mapping) && self.0.contains(&(mapping.device, mapping.inode))
    }
}

fn may_be(mapping: &Mapping) -> bool {
    mapping.shared && mapping.may_write && mapping.inode != 0
}
