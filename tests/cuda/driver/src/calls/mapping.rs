//! Calls for memory that is made and mapped in two steps.

use std::ffi::{c_int, c_uint, c_ulonglong};

use super::give;
use crate::code;
use crate::code::Code;
use crate::driver::{call, look};
use crate::mapping::GRANULARITY;

/// The place of memory, or of its users.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Location {
    kind: c_int,
    number: c_int,
}

/// Properties of the memory to make.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Properties {
    kind: c_int,
    /// Whether other processes can get the memory, and how.
    handles: c_int,
    location: Location,
    windows: u64,
    flags: [u8; 8],
}

/// Access rights of a device.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Access {
    location: Location,
    flags: c_int,
}

const PINNED: c_int = 1;
const ON_DEVICE: c_int = 1;
const READ_AND_WRITE: c_int = 3;
/// Other processes get memory as a file descriptor.
pub const DESCRIPTOR: c_int = 1;

#[unsafe(no_mangle)]
pub extern "C" fn cuMemGetAllocationGranularity(
    place: *mut usize,
    _properties: *const Properties,
    _option: c_uint,
) -> Code {
    // SAFETY: the program's place for a number.
    look(|_| unsafe { give(place, GRANULARITY as usize) })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemCreate(
    place: *mut u64,
    size: usize,
    properties: *const Properties,
    flags: c_ulonglong,
) -> Code {
    call(|driver| {
        // SAFETY: null, or the program's.
        let of = unsafe { properties.as_ref() }.ok_or(code::INVALID_VALUE)?;
        if (of.kind, of.location.kind, flags) != (PINNED, ON_DEVICE, 0) {
            return Err(code::INVALID_VALUE);
        }
        if !matches!(of.handles, 0 | DESCRIPTOR) {
            return Err(code::NOT_SUPPORTED);
        }
        let device = u32::try_from(of.location.number).map_err(|_| code::INVALID_DEVICE)?;
        let made = driver.make(device, size as u64, of.handles == DESCRIPTOR)?;
        // SAFETY: the program's place for a handle.
        unsafe { give(place, made) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemRelease(handle: u64) -> Code {
    call(|driver| match driver.multicasts.has(handle) {
        true => driver.let_multicast_go(handle),
        false => driver.let_go(handle),
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemAddressReserve(
    place: *mut u64,
    size: usize,
    alignment: usize,
    _hint: u64,
    flags: c_ulonglong,
) -> Code {
    call(|driver| {
        if flags != 0 {
            return Err(code::INVALID_VALUE);
        }
        let address = driver.reserve(size as u64, alignment as u64)?;
        // SAFETY: the program's place for a pointer.
        unsafe { give(place, address) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemAddressFree(address: u64, size: usize) -> Code {
    call(|driver| driver.unreserve(address, size as u64))
}

/// The offset must be zero: a later version of the driver may use it.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemMap(
    address: u64,
    size: usize,
    offset: usize,
    handle: u64,
    flags: c_ulonglong,
) -> Code {
    call(|driver| match (offset, flags) {
        (0, 0) => driver.map(address, size as u64, handle),
        _ => Err(code::INVALID_VALUE),
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemUnmap(address: u64, size: usize) -> Code {
    call(|driver| driver.unmap(address, size as u64))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemSetAccess(
    address: u64,
    size: usize,
    descriptions: *const Access,
    count: usize,
) -> Code {
    call(|driver| {
        if descriptions.is_null() || count == 0 {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: the program's list of so many.
        let all = unsafe { std::slice::from_raw_parts(descriptions, count) };
        let known = |one: &Access| (one.location.kind, one.flags) == (ON_DEVICE, READ_AND_WRITE);
        match all.iter().all(known) {
            true => driver.open(address, size as u64),
            false => Err(code::NOT_SUPPORTED),
        }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemRetainAllocationHandle(place: *mut u64, address: u64) -> Code {
    call(|driver| {
        let handle = driver.held_at(address)?;
        // SAFETY: the program's place for a handle.
        unsafe { give(place, handle) }
    })
}
