//! Copies: the device's DMA. Host memory belongs to another process, and is read and written from outside whether that process
//! runs or not.

use std::ptr;

use crate::links::{Links, Way};
use crate::memory::{Space, Span};
use crate::node::code;

/// The size of the portions in which copies of several streams share a link.
const PORTION: usize = 1 << 20;

/// The inputs of a copy.
pub struct Dma<'a> {
    pub pid: i32,
    pub space: &'a Space,
    pub links: &'a Links,
}

impl Dma<'_> {
    /// Copies from host memory to device memory.
    pub fn to_device(&self, host: u64, address: u64, size: u64) -> Result<(), u32> {
        self.host(host, address, size, Way::FromHost, |pid, there, here| {
            // SAFETY: `here` is a span's memory, and the kernel checks `there`.
            unsafe { libc::process_vm_readv(pid, here, 1, there, 1, 0) }
        })
    }

    /// Copies from device memory to host memory.
    pub fn to_host(&self, address: u64, host: u64, size: u64) -> Result<(), u32> {
        self.host(host, address, size, Way::ToHost, |pid, there, here| {
            // SAFETY: `here` is a span's memory, and the kernel checks `there`.
            unsafe { libc::process_vm_writev(pid, here, 1, there, 1, 0) }
        })
    }

    fn host(
        &self,
        mut host: u64,
        address: u64,
        size: u64,
        way: impl Fn(u32) -> Way,
        copy: impl Fn(i32, *const libc::iovec, *const libc::iovec) -> isize,
    ) -> Result<(), u32> {
        for span in self.space.spans(address, size)? {
            for (start, length) in portions(&span) {
                let over = self.links.reserve(way(span.block.device), length as u64);
                let there = libc::iovec {
                    iov_base: host as *mut _,
                    iov_len: length,
                };
                let here = libc::iovec {
                    iov_base: start.cast(),
                    iov_len: length,
                };
                if copy(self.pid, &there, &here) != length as isize {
                    return Err(code::ILLEGAL_ADDRESS);
                }
                host += length as u64;
                self.links.wait(over);
            }
        }
        Ok(())
    }

    /// Copies within a device or between two.
    pub fn within(&self, from: u64, to: u64, size: u64) -> Result<(), u32> {
        let sources = self.space.spans(from, size)?;
        let mut at = to;
        for source in sources {
            let mut start = source.start();
            for target in self.space.spans(at, source.size as u64)? {
                let way = Way::Between(source.block.device, target.block.device);
                for (into, length) in portions(&target) {
                    let over = self.links.reserve(way, length as u64);
                    // SAFETY: both ranges lie within spans that are held, and `copy` minds that they may overlap.
                    unsafe { ptr::copy(start, into, length) };
                    // SAFETY: `target` is no longer than what is left of `source`.
                    start = unsafe { start.add(length) };
                    self.links.wait(over);
                }
            }
            at += source.size as u64;
        }
        Ok(())
    }

    /// Writes a pattern so many times.
    pub fn fill(&self, address: u64, pattern: &[u8], count: u64) -> Result<(), u32> {
        let size = count
            .checked_mul(pattern.len() as u64)
            .ok_or(code::INVALID_VALUE)?;
        let mut next = pattern.iter().cycle();
        for span in self.space.spans(address, size)? {
            let start = span.start();
            if let [byte] = pattern {
                // SAFETY: all of the span.
                unsafe { ptr::write_bytes(start, *byte, span.size) };
                continue;
            }
            for offset in 0..span.size {
                let byte = next.next().copied().unwrap_or_default();
                // SAFETY: within the span.
                unsafe { start.add(offset).write(byte) };
            }
        }
        Ok(())
    }
}

/// Cuts a span into portions, and returns the beginning and length of each.
fn portions(span: &Span) -> impl Iterator<Item = (*mut u8, usize)> {
    let (start, size) = (span.start(), span.size);
    (0..size).step_by(PORTION).map(move |offset| {
        // SAFETY: within the span.
        (unsafe { start.add(offset) }, PORTION.min(size - offset))
    })
}
