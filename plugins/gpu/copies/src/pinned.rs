//! Pinned host memory: ranges that the driver has given, lent as slices while no copy is under way in them.

use stillpoint_gpu_staging::DeviceError;

/// One range of pinned memory.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    pub memory: *mut u8,
    pub bytes: u64,
    /// Whether another owner has pinned it, and will also unpin it.
    pub lent: bool,
}

/// All ranges.
#[derive(Default)]
pub struct Pinned {
    ranges: Vec<Range>,
}

impl Pinned {
    pub fn add(&mut self, memory: *mut u8, bytes: u64) {
        self.ranges.push(Range {
            memory,
            bytes,
            lent: false,
        });
    }

    /// Adds memory that another owner has pinned.
    pub fn borrow(&mut self, memory: *mut u8, bytes: u64) {
        self.ranges.push(Range {
            memory,
            bytes,
            lent: true,
        });
    }

    /// Takes the range that begins at an address out of the list.
    pub fn remove(&mut self, address: u64) -> Option<Range> {
        let at = self
            .ranges
            .iter()
            .position(|range| range.memory as u64 == address && !range.lent)?;
        Some(self.ranges.swap_remove(at))
    }

    /// Takes out all ranges that were pinned here.
    pub fn all(&mut self) -> Vec<Range> {
        let mut all = std::mem::take(&mut self.ranges);
        all.retain(|range| !range.lent);
        all
    }

    /// Returns the bytes that were pinned here.
    pub fn bytes(&self) -> u64 {
        let own = self.ranges.iter().filter(|range| !range.lent);
        own.map(|range| range.bytes).sum()
    }

    /// Returns a pointer to bytes of pinned memory, or an error if they are not inside one range.
    pub fn find(&self, address: u64, bytes: u64) -> Result<*mut u8, DeviceError> {
        let inside = |range: &&Range| {
            let start = range.memory as u64;
            let end = address.checked_add(bytes);
            address >= start && end.is_some_and(|end| end <= start + range.bytes)
        };
        match self.ranges.iter().find(inside) {
            Some(range) => Ok(range
                .memory
                .wrapping_add((address - range.memory as u64) as usize)),
            None => Err(DeviceError::Other(format!(
                "{bytes} bytes at {address:#x} are not pinned memory"
            ))),
        }
    }
}
