//! Devices and their properties.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use stillpoint_emulated_gpu_protocol::description::Device;

use super::give;
use crate::code::{self, Code};
use crate::driver::{Driver, look};

/// Returns the device with a number.
fn device(driver: &Driver, number: c_int) -> Result<(u32, &Device), Code> {
    let number = u32::try_from(number).map_err(|_| code::INVALID_DEVICE)?;
    let device = driver.node.devices.get(number as usize);
    Ok((number, device.ok_or(code::INVALID_DEVICE)?))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGetCount(count: *mut c_int) -> Code {
    // SAFETY: the program's place for a number.
    look(|driver| unsafe { give(count, driver.node.devices.len() as c_int) })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGet(place: *mut c_int, ordinal: c_int) -> Code {
    look(|driver| {
        device(driver, ordinal)?;
        // SAFETY: the program's place for a number.
        unsafe { give(place, ordinal) }
    })
}

/// Puts a text into a buffer of the program, cut if there is no room.
fn put(text: &str, buffer: *mut c_char, length: c_int) -> Result<(), Code> {
    let length = usize::try_from(length).unwrap_or(0);
    if buffer.is_null() || length == 0 {
        return Err(code::INVALID_VALUE);
    }
    // SAFETY: the program's buffer has `length` bytes.
    let buffer = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), length) };
    let kept = text.len().min(length - 1);
    buffer[..kept].copy_from_slice(&text.as_bytes()[..kept]);
    buffer[kept] = 0;
    Ok(())
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGetName(name: *mut c_char, length: c_int, number: c_int) -> Code {
    look(|driver| put(&device(driver, number)?.1.name, name, length))
}

/// For a part of a GPU this is the GPU's uuid; the newer form returns the part's.
#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGetUuid(uuid: *mut [u8; 16], number: c_int) -> Code {
    look(|driver| {
        let (_, device) = device(driver, number)?;
        // SAFETY: the program's place for an identity.
        unsafe { give(uuid, device.part_of.unwrap_or(device.uuid)) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGetUuid_v2(uuid: *mut [u8; 16], number: c_int) -> Code {
    // SAFETY: the program's place for an identity.
    look(|driver| unsafe { give(uuid, device(driver, number)?.1.uuid) })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceTotalMem_v2(bytes: *mut usize, number: c_int) -> Code {
    // SAFETY: the program's place for a number.
    look(|driver| unsafe { give(bytes, device(driver, number)?.1.memory as usize) })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGetPCIBusId(id: *mut c_char, length: c_int, number: c_int) -> Code {
    look(|driver| {
        let (number, _) = device(driver, number)?;
        put(&format!("0000:{:02X}:00.0", number + 1), id, length)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGetByPCIBusId(place: *mut c_int, id: *const c_char) -> Code {
    look(|driver| {
        if id.is_null() {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: a text of the program.
        let id = unsafe { CStr::from_ptr(id) }
            .to_string_lossy()
            .to_uppercase();
        let numbers = 0..driver.node.devices.len();
        let found = numbers
            .into_iter()
            .find(|number| id.ends_with(&format!("{:02X}:00.0", number + 1)));
        // SAFETY: the program's place for a number.
        unsafe { give(place, found.ok_or(code::INVALID_DEVICE)? as c_int) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceComputeCapability(
    major: *mut c_int,
    minor: *mut c_int,
    number: c_int,
) -> Code {
    look(|driver| {
        let [one, other] = device(driver, number)?.1.capability;
        // SAFETY: the program's places for numbers.
        unsafe { give(major, one).and_then(|()| give(minor, other)) }
    })
}

/// The last valid attribute.
const LAST_ATTRIBUTE: c_int = 150;

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, number: c_int) -> Code {
    look(|driver| {
        let (number, device) = device(driver, number)?;
        let answer = match attribute {
            // Threads in a block: in total and for each side.
            1..=3 => 1024,
            4 => 64,
            // Blocks in a grid.
            5 => i32::MAX,
            6 | 7 => 65535,
            // Shared memory of a block, and constant memory.
            8 => 49152,
            9 => 65536,
            // Threads in a warp.
            10 => 32,
            11 => i32::MAX,
            // Registers of a block, and the clock.
            12 => 65536,
            13 => 1_000_000,
            14 => 512,
            // Copies run beside kernels.
            15 => 1,
            16 => 4,
            // Host memory can be mapped: the address is the same, yet no kernel here reaches it.
            19 | 31 | 41 => 1,
            33 => number as c_int + 1,
            37 => 512,
            38 => 1 << 20,
            // Threads of a processor, and parallel copies.
            39 => 2048,
            40 => 2,
            75 => device.capability[0],
            76 => device.capability[1],
            78 => 1,
            // Shared memory and registers of a processor.
            81 => 98304,
            82 => 65536,
            // Managed memory.
            83 => 1,
            // Memory in two steps, and file descriptors for it.
            102 | 103 => 1,
            // Memory pools: allocation in a stream's order.
            115 => 1,
            // Multicast objects.
            132 => 1,
            other if (1..=LAST_ATTRIBUTE).contains(&other) => 0,
            _ => return Err(code::INVALID_VALUE),
        };
        // SAFETY: the program's place for a number.
        unsafe { give(value, answer) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceCanAccessPeer(can: *mut c_int, number: c_int, peer: c_int) -> Code {
    look(|driver| {
        let (one, _) = device(driver, number)?;
        let (other, _) = device(driver, peer)?;
        let linked = driver.node.link(one, other).is_some();
        // SAFETY: the program's place for a number.
        unsafe { give(can, c_int::from(linked)) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGetP2PAttribute(
    value: *mut c_int,
    attribute: c_uint,
    number: c_int,
    peer: c_int,
) -> Code {
    look(|driver| {
        let (one, _) = device(driver, number)?;
        let (other, _) = device(driver, peer)?;
        if one == other {
            return Err(code::INVALID_DEVICE);
        }
        let link = driver.node.link(one, other);
        let quicker = |link: &&stillpoint_emulated_gpu_protocol::description::Link| {
            let rates = driver.node.links.iter().filter_map(|other| other.bandwidth);
            link.bandwidth
                .is_some_and(|rate| rates.into_iter().any(|other| other > rate))
        };
        let answer = match attribute {
            // The performance rank: 0 for the fastest of the node's links.
            1 => c_int::from(link.as_ref().is_some_and(quicker)),
            2 => c_int::from(link.is_some()),
            // Atomic operations, and arrays.
            3 | 4 => 0,
            _ => return Err(code::INVALID_VALUE),
        };
        // SAFETY: the program's place for a number.
        unsafe { give(value, answer) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGetDefaultMemPool(pool: *mut *mut c_void, number: c_int) -> Code {
    look(|driver| {
        let (number, _) = device(driver, number)?;
        // SAFETY: the program's place for a handle.
        unsafe { give(pool, super::memory::pool(number)) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGetMemPool(pool: *mut *mut c_void, number: c_int) -> Code {
    cuDeviceGetDefaultMemPool(pool, number)
}
