//! Device memory that processes share: one gives it a name or a file descriptor, by which others open it. A process with such memory cannot be checkpointed, as
//! the real driver's documents say.

use std::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::fs::{self, File};
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, IntoRawFd};
use std::os::unix::fs::FileExt;

use stillpoint_emulated_gpu_protocol::message::{Reply, Request};

use super::give;
use super::mapping::DESCRIPTOR;
use crate::code::{self, Code};
use crate::driver::call;
use crate::objects::Memory;

/// A name, as programs send it to each other: device, number, size.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Name {
    device: u64,
    token: u64,
    size: u64,
    rest: [u64; 5],
}

/// The flag that makes peers accessible if needed.
const LAZY_PEER_ACCESS: c_uint = 1;

#[unsafe(no_mangle)]
pub extern "C" fn cuIpcGetMemHandle(place: *mut Name, address: u64) -> Code {
    call(|driver| {
        let memory = driver
            .memory
            .get(&address)
            .filter(|memory| !memory.managed)
            .copied()
            .ok_or(code::INVALID_VALUE)?;
        let Reply::Lent(lent) = driver.connection()?.ask(&Request::Share { address })? else {
            return Err(code::UNKNOWN);
        };
        driver.memory.insert(
            address,
            Memory {
                shared: true,
                ..memory
            },
        );
        let name = Name {
            device: lent.device.into(),
            token: lent.token,
            size: lent.size,
            rest: [0; 5],
        };
        // SAFETY: the program's place for a name.
        unsafe { give(place, name) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuIpcOpenMemHandle_v2(place: *mut u64, name: Name, flags: c_uint) -> Code {
    call(|driver| {
        if flags != LAZY_PEER_ACCESS {
            return Err(code::INVALID_VALUE);
        }
        let address = driver.open_shared(name.token, name.size)?;
        // SAFETY: the program's place for a pointer.
        unsafe { give(place, address) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuIpcCloseMemHandle(address: u64) -> Code {
    call(|driver| driver.free(address))
}

/// Makes a descriptor of a device's file. Any process with this descriptor can open the memory.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemExportToShareableHandle(
    place: *mut c_void,
    handle: u64,
    kind: c_int,
    flags: c_ulonglong,
) -> Code {
    call(|driver| {
        if (kind, flags) != (DESCRIPTOR, 0) {
            return Err(code::INVALID_VALUE);
        }
        let lent = driver.export(handle)?;
        let name = driver.folder.join(format!("nvidia-export-{}", lent.token));
        let words = [lent.token, lent.device.into(), lent.size].map(u64::to_le_bytes);
        let made = fs::write(&name, words.concat()).and_then(|()| File::open(&name));
        // The open descriptor suffices.
        let removed = fs::remove_file(&name);
        let file = made.and_then(|file| removed.map(|()| file));
        let file = file.map_err(|_| code::OPERATING_SYSTEM)?;
        // SAFETY: the program's place for a descriptor.
        unsafe { give(place.cast(), file.into_raw_fd()) }
    })
}

/// The descriptor is passed as if it were a pointer, and stays the program's.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemImportFromShareableHandle(
    place: *mut u64,
    descriptor: *mut c_void,
    kind: c_int,
) -> Code {
    call(|driver| {
        if kind != DESCRIPTOR {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: it is looked at, and not closed.
        let file = ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor.addr() as c_int) });
        let mut words = [[0; 8]; 3];
        file.read_exact_at(words.as_flattened_mut(), 0)
            .map_err(|_| code::INVALID_VALUE)?;
        let [token, device, size] = words.map(u64::from_le_bytes);
        let made = driver.import(token, device as u32, size)?;
        // SAFETY: the program's place for a handle.
        unsafe { give(place, made) }
    })
}
