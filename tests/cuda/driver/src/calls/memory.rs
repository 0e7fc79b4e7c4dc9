//! Memory: of the device, and pinned memory of the host.

use std::ffi::{c_int, c_uint, c_void};

use super::give;
use crate::code::{self, Code};
use crate::driver::{self, Driver, call, look};
use crate::objects::{Mapped, Memory, Pinned};
use crate::window;

#[unsafe(no_mangle)]
pub extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> Code {
    call(|driver| {
        let device = driver.context()?.1.device;
        let (left, all) = driver.room(device)?;
        // SAFETY: the program's places for numbers.
        unsafe { give(free, left as usize).and_then(|()| give(total, all as usize)) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemAlloc_v2(address: *mut u64, size: usize) -> Code {
    call(|driver| {
        let allocated = driver.allocate(size as u64)?;
        // SAFETY: the program's place for a pointer.
        unsafe { give(address, allocated) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemAllocPitch_v2(
    address: *mut u64,
    pitch: *mut usize,
    width: usize,
    height: usize,
    _element: c_uint,
) -> Code {
    call(|driver| {
        let row = width
            .checked_next_multiple_of(512)
            .ok_or(code::OUT_OF_MEMORY)?;
        let size = row.checked_mul(height).ok_or(code::OUT_OF_MEMORY)?;
        let allocated = driver.allocate(size as u64)?;
        // SAFETY: the program's places for a pointer and a number.
        unsafe { give(address, allocated).and_then(|()| give(pitch, row)) }
    })
}

/// Freeing waits for the work of the context, as the real driver does.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemFree_v2(address: u64) -> Code {
    if address == 0 {
        return code::SUCCESS;
    }
    let waited = driver::call_and_wait(|driver| {
        let own = |memory: &&Memory| memory.mapped == Mapped::No;
        let memory = driver.memory.get(&address).filter(own);
        let memory = memory.ok_or(code::INVALID_VALUE)?;
        Ok(driver.work_of(memory.context))
    });
    match waited {
        code::SUCCESS => call(|driver| driver.free(address)),
        code => code,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemAllocAsync(address: *mut u64, size: usize, stream: u64) -> Code {
    call(|driver| {
        driver.stream(stream)?;
        let allocated = driver.allocate(size as u64)?;
        // SAFETY: the program's place for a pointer.
        unsafe { give(address, allocated) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFreeAsync(address: u64, stream: u64) -> Code {
    call(|driver| driver.free_in_order(address, stream))
}

/// Returns the handle of a device's memory pool. There is one for each device, and it keeps no freed memory.
pub fn pool(device: u32) -> *mut c_void {
    std::ptr::without_provenance_mut(0x2_0000 + 0x100 * device as usize)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemAllocFromPoolAsync(
    address: *mut u64,
    size: usize,
    from: *mut c_void,
    stream: u64,
) -> Code {
    let known = look(|driver| {
        let device = driver.context()?.1.device;
        match pool(device) == from {
            true => Ok(()),
            false => Err(code::INVALID_HANDLE),
        }
    });
    match known {
        code::SUCCESS => cuMemAllocAsync(address, size, stream),
        code => code,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemPoolTrimTo(_pool: *mut c_void, _keep: usize) -> Code {
    look(|_| Ok(()))
}

/// Pinned host memory lies in the window, as the host's and the device's address are the same.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemHostAlloc(place: *mut *mut c_void, size: usize, flags: c_uint) -> Code {
    call(|driver| {
        let (context, _) = driver.context()?;
        let size = size as u64;
        if size == 0 {
            return Err(code::INVALID_VALUE);
        }
        let room = size
            .checked_next_multiple_of(4096)
            .ok_or(code::OUT_OF_MEMORY)?;
        let address = driver.pinned_addresses.take(room, 4096);
        let address = address.ok_or(code::OUT_OF_MEMORY)?;
        if window::host_memory(address, room).is_err() {
            driver.pinned_addresses.give_back(address);
            return Err(code::OUT_OF_MEMORY);
        }
        driver.pinned.insert(
            address,
            Pinned {
                context,
                size,
                flags,
                registered: false,
            },
        );
        // SAFETY: the program's place for a pointer.
        unsafe { give(place, address as *mut c_void) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemAllocHost_v2(place: *mut *mut c_void, size: usize) -> Code {
    cuMemHostAlloc(place, size, 0)
}

/// Ends pinned memory of one kind, once the work that may use it is done.
fn unpin(address: u64, registered: bool, otherwise: Code) -> Code {
    let waited = driver::call_and_wait(|driver| match driver.pinned.get(&address) {
        Some(pinned) if pinned.registered == registered => Ok(driver.work_of(pinned.context)),
        _ => Err(otherwise),
    });
    match waited {
        code::SUCCESS => call(|driver| driver.unpin(address)),
        code => code,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFreeHost(address: *mut c_void) -> Code {
    match address.is_null() {
        true => code::SUCCESS,
        false => unpin(address as u64, false, code::INVALID_VALUE),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemHostRegister_v2(address: *mut c_void, size: usize, flags: c_uint) -> Code {
    call(|driver| {
        let (context, _) = driver.context()?;
        let (start, size) = (address as u64, size as u64);
        let end = start.checked_add(size).ok_or(code::INVALID_VALUE)?;
        if start == 0 || size == 0 {
            return Err(code::INVALID_VALUE);
        }
        let before = driver.pinned.range(..end).next_back();
        if before.is_some_and(|(&other, pinned)| other + pinned.size > start) {
            return Err(code::HOST_MEMORY_ALREADY_REGISTERED);
        }
        driver.pinned.insert(
            start,
            Pinned {
                context,
                size,
                flags,
                registered: true,
            },
        );
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemHostUnregister(address: *mut c_void) -> Code {
    unpin(address as u64, true, code::HOST_MEMORY_NOT_REGISTERED)
}

/// Returns the pinned memory that contains a pointer of the program.
fn pinned_at(driver: &Driver, address: *mut c_void) -> Result<Pinned, Code> {
    let found = driver.pinned_at(address as u64);
    found.map(|(_, pinned)| *pinned).ok_or(code::INVALID_VALUE)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemHostGetDevicePointer_v2(
    place: *mut u64,
    address: *mut c_void,
    flags: c_uint,
) -> Code {
    look(|driver| {
        pinned_at(driver, address)?;
        if flags != 0 {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: the program's place for a pointer.
        unsafe { give(place, address as u64) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemHostGetFlags(flags: *mut c_uint, address: *mut c_void) -> Code {
    look(|driver| {
        let pinned = pinned_at(driver, address)?;
        // SAFETY: the program's place for a number.
        unsafe { give(flags, pinned.flags) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemGetAddressRange_v2(base: *mut u64, size: *mut usize, address: u64) -> Code {
    look(|driver| {
        let device = driver
            .memory_at(address)
            .map(|(start, memory)| (start, memory.size));
        let pinned = driver
            .pinned_at(address)
            .map(|(start, pinned)| (start, pinned.size));
        let (start, length) = device.or(pinned).ok_or(code::NOT_FOUND)?;
        if !base.is_null() {
            // SAFETY: the program's place for a pointer.
            unsafe { give(base, start) }?;
        }
        match size.is_null() {
            true => Ok(()),
            // SAFETY: the program's place for a number.
            false => unsafe { give(size, length as usize) },
        }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceSetMemPool(number: c_int, given: *mut c_void) -> Code {
    look(|driver| {
        let count = driver.node.devices.len();
        match u32::try_from(number) {
            Ok(number) if (number as usize) < count && pool(number) == given => Ok(()),
            Ok(number) if (number as usize) < count => Err(code::NOT_SUPPORTED),
            _ => Err(code::INVALID_DEVICE),
        }
    })
}
