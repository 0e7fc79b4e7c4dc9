//! Device memory that processes share: one gives it a name, others open it by that. A process that has such memory cannot be checkpointed, as the real driver's
//! documents say.

use std::ffi::c_uint;

use stillpoint_emulated_gpu_protocol::message::{Reply, Request};

use super::give;
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

/// Peers are made accessible where that is needed.
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
