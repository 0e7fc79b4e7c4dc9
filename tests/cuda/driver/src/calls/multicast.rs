//! Multicast objects. They cannot be passed to other processes: a team consists of one process's devices.

use std::ffi::{c_int, c_uint, c_ulonglong};

use super::give;
use crate::code::{self, Code};
use crate::driver::{call, look};
use crate::mapping::GRANULARITY;

/// Properties of the object to make.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct MulticastProperties {
    devices: c_uint,
    size: usize,
    /// The ways in which other processes can get it.
    handles: c_ulonglong,
    flags: c_ulonglong,
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMulticastGetGranularity(
    place: *mut usize,
    _properties: *const MulticastProperties,
    _option: c_uint,
) -> Code {
    // SAFETY: the program's place for a number.
    look(|_| unsafe { give(place, GRANULARITY as usize) })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMulticastCreate(
    place: *mut u64,
    properties: *const MulticastProperties,
) -> Code {
    call(|driver| {
        // SAFETY: null, or the program's.
        let of = unsafe { properties.as_ref() }.ok_or(code::INVALID_VALUE)?;
        if of.flags != 0 {
            return Err(code::INVALID_VALUE);
        }
        if of.handles != 0 {
            return Err(code::NOT_SUPPORTED);
        }
        let made = driver.make_multicast(of.devices, of.size as u64)?;
        // SAFETY: the program's place for a handle.
        unsafe { give(place, made) }
    })
}

fn number(device: c_int) -> Result<u32, Code> {
    u32::try_from(device).map_err(|_| code::INVALID_DEVICE)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMulticastAddDevice(object: u64, device: c_int) -> Code {
    call(|driver| driver.join_multicast(object, number(device)?))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMulticastBindMem(
    object: u64,
    offset: usize,
    memory: u64,
    within: usize,
    size: usize,
    flags: c_ulonglong,
) -> Code {
    call(|driver| match flags {
        0 => driver.bind_multicast(object, offset as u64, memory, within as u64, size as u64),
        _ => Err(code::INVALID_VALUE),
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMulticastUnbind(
    object: u64,
    device: c_int,
    offset: usize,
    size: usize,
) -> Code {
    call(|driver| driver.unbind_multicast(object, number(device)?, offset as u64, size as u64))
}
