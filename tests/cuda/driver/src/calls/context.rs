//! Contexts.

use std::ffi::{c_int, c_uint, c_void};

use super::give;
use crate::code::{self, Code};
use crate::driver::{self, Driver, call, current, look};

fn number(driver: &Driver, device: c_int) -> Result<u32, Code> {
    let number = u32::try_from(device).map_err(|_| code::INVALID_DEVICE)?;
    match driver.primaries.get(number as usize) {
        Some(_) => Ok(number),
        None => Err(code::INVALID_DEVICE),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxRetain(context: *mut u64, device: c_int) -> Code {
    call(|driver| {
        let number = number(driver, device)?;
        let primary = &driver.primaries[number as usize];
        let (held, flags) = (primary.context, primary.flags);
        let handle = match held {
            Some(handle) => handle,
            None => driver.make_context(number, flags)?,
        };
        let primary = &mut driver.primaries[number as usize];
        primary.context = Some(handle);
        primary.holders += 1;
        // SAFETY: the program's place for a handle.
        unsafe { give(context, handle) }
    })
}

/// Ends a context once its work is done.
fn finish(handle: u64, end: impl FnOnce(&mut Driver) -> Result<(), Code>) -> Code {
    let mut pieces = vec![];
    let known = look(|driver| {
        pieces = driver.work_of(handle);
        Ok(())
    });
    if known != code::SUCCESS {
        return known;
    }
    // An error of its work does not keep a context alive.
    let _ = driver::wait(&pieces);
    look(end)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxRelease_v2(device: c_int) -> Code {
    let mut last = None;
    let result = look(|driver| {
        let number = number(driver, device)?;
        let primary = &mut driver.primaries[number as usize];
        primary.holders = primary
            .holders
            .checked_sub(1)
            .ok_or(code::INVALID_CONTEXT)?;
        if primary.holders == 0 {
            last = primary.context.take();
        }
        Ok(())
    });
    match last {
        Some(handle) => finish(handle, |driver| driver.end_context(handle)),
        None => result,
    }
}

/// Holders of the primary context still have to release it.
#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxReset_v2(device: c_int) -> Code {
    let mut last = None;
    let result = look(|driver| {
        let number = number(driver, device)?;
        last = driver.primaries[number as usize].context.take();
        Ok(())
    });
    match last {
        Some(handle) => finish(handle, |driver| driver.end_context(handle)),
        None => result,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxSetFlags_v2(device: c_int, flags: c_uint) -> Code {
    look(|driver| {
        let number = number(driver, device)?;
        driver.primaries[number as usize].flags = flags;
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxGetState(
    device: c_int,
    flags: *mut c_uint,
    active: *mut c_int,
) -> Code {
    look(|driver| {
        let number = number(driver, device)?;
        let primary = &driver.primaries[number as usize];
        // SAFETY: the program's places for numbers.
        unsafe {
            give(flags, primary.flags)?;
            give(active, c_int::from(primary.context.is_some()))
        }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxCreate_v2(context: *mut u64, flags: c_uint, device: c_int) -> Code {
    call(|driver| {
        let number = number(driver, device)?;
        let handle = driver.make_context(number, flags)?;
        current(|stack| stack.push(handle));
        // SAFETY: the program's place for a handle.
        unsafe { give(context, handle) }
    })
}

/// Parameters for special contexts are not supported.
#[unsafe(no_mangle)]
pub extern "C" fn cuCtxCreate_v4(
    context: *mut u64,
    parameters: *const c_void,
    flags: c_uint,
    device: c_int,
) -> Code {
    match parameters.is_null() {
        true => cuCtxCreate_v2(context, flags, device),
        false => code::NOT_SUPPORTED,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxDestroy_v2(context: u64) -> Code {
    finish(context, |driver| {
        let primary = driver.primaries.iter();
        if primary.into_iter().any(|one| one.context == Some(context)) {
            return Err(code::INVALID_CONTEXT);
        }
        driver.end_context(context)?;
        current(|stack| stack.retain(|one| *one != context));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxGetCurrent(context: *mut u64) -> Code {
    // SAFETY: the program's place for a handle.
    look(|_| unsafe { give(context, current(|stack| stack.last().copied().unwrap_or(0))) })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSetCurrent(context: u64) -> Code {
    look(|driver| {
        if context != 0 && driver.contexts.get(context).is_none() {
            return Err(code::INVALID_CONTEXT);
        }
        current(|stack| {
            stack.pop();
            if context != 0 {
                stack.push(context);
            }
        });
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxPushCurrent_v2(context: u64) -> Code {
    look(|driver| {
        driver.contexts.get(context).ok_or(code::INVALID_CONTEXT)?;
        current(|stack| stack.push(context));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxPopCurrent_v2(context: *mut u64) -> Code {
    look(|_| {
        let handle = current(Vec::pop).ok_or(code::INVALID_CONTEXT)?;
        match context.is_null() {
            true => Ok(()),
            // SAFETY: the program's place for a handle.
            false => unsafe { give(context, handle) },
        }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxGetDevice(device: *mut c_int) -> Code {
    // SAFETY: the program's place for a number.
    look(|driver| unsafe { give(device, driver.context()?.1.device as c_int) })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxGetFlags(flags: *mut c_uint) -> Code {
    // SAFETY: the program's place for a number.
    look(|driver| unsafe { give(flags, driver.context()?.1.flags) })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSetFlags(flags: c_uint) -> Code {
    look(|driver| {
        let (handle, _) = driver.context()?;
        if let Some(context) = driver.contexts.get_mut(handle) {
            context.flags = flags;
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxGetApiVersion(context: u64, version: *mut c_uint) -> Code {
    look(|driver| {
        let handle = match context {
            0 => driver.context()?.0,
            handle => handle,
        };
        let context = driver.contexts.get(handle).ok_or(code::INVALID_CONTEXT)?;
        // SAFETY: the program's place for a number.
        unsafe { give(version, context.version) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) -> Code {
    look(|driver| {
        driver.context()?;
        for (place, value) in [(least, 0), (greatest, -1)] {
            if !place.is_null() {
                // SAFETY: the program's place for a number.
                unsafe { give(place, value) }?;
            }
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSynchronize() -> Code {
    driver::call_and_wait(|driver| {
        let (handle, _) = driver.context()?;
        Ok(driver.work_of(handle))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxEnablePeerAccess(peer: u64, flags: c_uint) -> Code {
    call(|driver| {
        let other = driver.contexts.get(peer).ok_or(code::INVALID_CONTEXT)?;
        let other = other.device;
        let (handle, context) = driver.context()?;
        if flags != 0 {
            return Err(code::INVALID_VALUE);
        }
        if driver.node.link(context.device, other).is_none() {
            return Err(code::PEER_ACCESS_UNSUPPORTED);
        }
        match driver.contexts.get_mut(handle) {
            Some(context) if context.peers.contains(&peer) => {
                Err(code::PEER_ACCESS_ALREADY_ENABLED)
            }
            Some(context) => {
                context.peers.push(peer);
                Ok(())
            }
            None => Err(code::INVALID_CONTEXT),
        }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxDisablePeerAccess(peer: u64) -> Code {
    call(|driver| {
        let (handle, _) = driver.context()?;
        let context = driver.contexts.get_mut(handle);
        let peers = &mut context.ok_or(code::INVALID_CONTEXT)?.peers;
        let at = peers.iter().position(|one| *one == peer);
        peers.remove(at.ok_or(code::PEER_ACCESS_NOT_ENABLED)?);
        Ok(())
    })
}
