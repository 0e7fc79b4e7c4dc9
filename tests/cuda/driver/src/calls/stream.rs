//! Streams.

use std::ffi::{c_int, c_uint, c_void};

use stillpoint_emulated_gpu_protocol::channel::STREAMS;
use stillpoint_emulated_gpu_protocol::message::Work;

use super::give;
use crate::callbacks::Function;
use crate::code::{self, Code};
use crate::driver::{call, call_and_wait, look};
use crate::objects::{Order, Stream};
use crate::window;

/// The flag of a stream that is independent of the default stream.
const FREE: c_uint = 1;

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamCreateWithPriority(
    place: *mut u64,
    flags: c_uint,
    priority: c_int,
) -> Code {
    call(|driver| {
        let (context, _) = driver.context()?;
        let order = match flags {
            0 => Order::Blocking,
            FREE => Order::Free,
            _ => return Err(code::INVALID_VALUE),
        };
        let slot = driver.slots.take(STREAMS).ok_or(code::OUT_OF_MEMORY)?;
        let stream = driver.streams.add(Stream {
            context,
            slot,
            order,
            flags,
            priority: priority.clamp(-1, 0),
        });
        // SAFETY: the program's place for a handle.
        unsafe { give(place, stream) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamCreate(place: *mut u64, flags: c_uint) -> Code {
    cuStreamCreateWithPriority(place, flags, 0)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamDestroy_v2(stream: u64) -> Code {
    look(|driver| match driver.streams.get(stream) {
        Some(one) if one.order != Order::Default => driver.end_stream(stream),
        _ => Err(code::INVALID_HANDLE),
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamSynchronize(stream: u64) -> Code {
    call_and_wait(|driver| {
        let slot = driver.stream(stream)?.1.slot;
        Ok(vec![(slot, driver.slots.last(slot))])
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamQuery(stream: u64) -> Code {
    call(|driver| {
        let slot = driver.stream(stream)?.1.slot;
        match window::channel().has(slot, driver.slots.last(slot)) {
            true => Ok(()),
            false => Err(code::NOT_READY),
        }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamWaitEvent(stream: u64, event: u64, _flags: c_uint) -> Code {
    call(|driver| {
        let recorded = driver.events.get(event).ok_or(code::INVALID_HANDLE)?;
        // An event that was never recorded delays no stream.
        let Some(piece) = recorded.recorded else {
            return driver.stream(stream).map(drop);
        };
        driver.submit(stream, vec![piece], Work::Nothing).map(drop)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamGetFlags(stream: u64, flags: *mut c_uint) -> Code {
    // SAFETY: the program's place for a number.
    look(|driver| unsafe { give(flags, driver.stream(stream)?.1.flags) })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamGetPriority(stream: u64, priority: *mut c_int) -> Code {
    // SAFETY: the program's place for a number.
    look(|driver| unsafe { give(priority, driver.stream(stream)?.1.priority) })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamGetCtx(stream: u64, context: *mut u64) -> Code {
    // SAFETY: the program's place for a handle.
    look(|driver| unsafe { give(context, driver.stream(stream)?.1.context) })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuLaunchHostFunc(
    stream: u64,
    function: Option<Function>,
    argument: *mut c_void,
) -> Code {
    call(|driver| {
        let function = function.ok_or(code::INVALID_VALUE)?;
        driver.call_in_order(stream, function, argument)
    })
}
