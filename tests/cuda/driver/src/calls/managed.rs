//! Managed memory. It has one place for the host and the device alike, so a program's hints about its place change nothing.

use std::ffi::{c_int, c_uint};

use stillpoint_emulated_gpu_protocol::message::Work;

use super::give;
use crate::code::{self, Code};
use crate::driver::{Driver, call, look};

/// For all streams, and for the host until a stream is attached.
const FLAGS: std::ops::RangeInclusive<c_uint> = 1..=2;

/// The preferred place of memory.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Location {
    kind: c_int,
    number: c_int,
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemAllocManaged(address: *mut u64, size: usize, flags: c_uint) -> Code {
    call(|driver| {
        if !FLAGS.contains(&flags) {
            return Err(code::INVALID_VALUE);
        }
        let allocated = driver.allocate_managed(size as u64)?;
        // SAFETY: the program's place for a pointer.
        unsafe { give(address, allocated) }
    })
}

/// Checks that a range is managed memory.
fn known(driver: &Driver, address: u64, size: usize) -> Result<(), Code> {
    match driver.memory_at(address) {
        Some((start, memory)) if memory.managed => {
            let inside = address + size as u64 <= start + memory.size;
            inside.then_some(()).ok_or(code::INVALID_VALUE)
        }
        _ => Err(code::INVALID_VALUE),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemAdvise_v2(
    address: u64,
    size: usize,
    _advice: c_uint,
    _location: Location,
) -> Code {
    look(|driver| known(driver, address, size))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemPrefetchAsync_v2(
    address: u64,
    size: usize,
    _location: Location,
    flags: c_uint,
    stream: u64,
) -> Code {
    call(|driver| {
        known(driver, address, size)?;
        match flags {
            0 => driver.submit(stream, vec![], Work::Nothing).map(drop),
            _ => Err(code::INVALID_VALUE),
        }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamAttachMemAsync(
    stream: u64,
    address: u64,
    length: usize,
    _flags: c_uint,
) -> Code {
    call(|driver| {
        known(driver, address, length)?;
        driver.submit(stream, vec![], Work::Nothing).map(drop)
    })
}
