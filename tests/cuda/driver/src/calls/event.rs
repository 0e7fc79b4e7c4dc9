//! Events.

use std::ffi::c_uint;
use std::sync::atomic::Ordering;

use stillpoint_emulated_gpu_protocol::channel::EVENTS;
use stillpoint_emulated_gpu_protocol::message::Work;

use super::give;
use crate::code::{self, Code};
use crate::driver::{call, call_and_wait, look};
use crate::objects::Event;
use crate::window;

/// The flag of an event that keeps no time.
const WITHOUT_TIME: c_uint = 2;

#[unsafe(no_mangle)]
pub extern "C" fn cuEventCreate(place: *mut u64, flags: c_uint) -> Code {
    call(|driver| {
        let (context, _) = driver.context()?;
        let time = match flags & WITHOUT_TIME {
            0 => Some(driver.times.take(EVENTS).ok_or(code::OUT_OF_MEMORY)?),
            _ => None,
        };
        let event = driver.events.add(Event {
            context,
            time,
            recorded: None,
        });
        // SAFETY: the program's place for a handle.
        unsafe { give(place, event) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventDestroy_v2(event: u64) -> Code {
    look(|driver| {
        driver.events.get(event).ok_or(code::INVALID_HANDLE)?;
        driver.end_event(event);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventRecord(event: u64, stream: u64) -> Code {
    call(|driver| {
        let known = driver.events.get(event).ok_or(code::INVALID_HANDLE)?;
        if known.context != driver.stream(stream)?.1.context {
            return Err(code::INVALID_HANDLE);
        }
        let work = match known.time {
            Some(event) => Work::Stamp { event },
            None => Work::Nothing,
        };
        let piece = driver.submit(stream, vec![], work)?;
        if let Some(event) = driver.events.get_mut(event) {
            event.recorded = Some(piece);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventRecordWithFlags(event: u64, stream: u64, flags: c_uint) -> Code {
    match flags {
        0 => cuEventRecord(event, stream),
        _ => code::NOT_SUPPORTED,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventQuery(event: u64) -> Code {
    call(|driver| {
        let event = driver.events.get(event).ok_or(code::INVALID_HANDLE)?;
        let done = event.recorded;
        match done.is_none_or(|(slot, sequence)| window::channel().has(slot, sequence)) {
            true => Ok(()),
            false => Err(code::NOT_READY),
        }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventSynchronize(event: u64) -> Code {
    call_and_wait(|driver| {
        let event = driver.events.get(event).ok_or(code::INVALID_HANDLE)?;
        Ok(event.recorded.into_iter().collect())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventElapsedTime(milliseconds: *mut f32, start: u64, end: u64) -> Code {
    call(|driver| {
        let channel = window::channel();
        let time = |event: u64| {
            let event = driver.events.get(event).ok_or(code::INVALID_HANDLE)?;
            let (Some(time), Some((slot, sequence))) = (event.time, event.recorded) else {
                return Err(code::INVALID_HANDLE);
            };
            match channel.has(slot, sequence) {
                true => Ok(channel.times[time as usize].load(Ordering::Acquire)),
                false => Err(code::NOT_READY),
            }
        };
        let nanoseconds = time(end)? as f64 - time(start)? as f64;
        // SAFETY: the program's place for a number.
        unsafe { give(milliseconds, (nanoseconds / 1e6) as f32) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventElapsedTime_v2(milliseconds: *mut f32, start: u64, end: u64) -> Code {
    cuEventElapsedTime(milliseconds, start, end)
}
