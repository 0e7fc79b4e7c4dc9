//! Settings without effect here: how a real device shares its resources among kernels. They are kept if programs can read them back.

use std::ffi::{c_int, c_uint, c_void};

use super::give;
use crate::code::{self, Code};
use crate::driver::{Driver, call, look};

/// Limits, from the first: stack, output, heap, and others.
const LIMITS: [usize; 7] = [1024, 1 << 20, 8 << 20, 2, 2048, 128, 0];

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxGetLimit(value: *mut usize, limit: c_uint) -> Code {
    look(|driver| {
        let (_, context) = driver.context()?;
        let limit = limit as usize;
        let otherwise = LIMITS.get(limit).ok_or(code::INVALID_VALUE)?;
        let set = context.limits.get(&limit).unwrap_or(otherwise);
        // SAFETY: the program's place for a number.
        unsafe { give(value, *set) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSetLimit(limit: c_uint, value: usize) -> Code {
    look(|driver| {
        let (handle, _) = driver.context()?;
        let limit = limit as usize;
        LIMITS.get(limit).ok_or(code::INVALID_VALUE)?;
        if let Some(context) = driver.contexts.get_mut(handle) {
            context.limits.insert(limit, value);
        }
        Ok(())
    })
}

/// Returns the first setting, which means no preference.
#[unsafe(no_mangle)]
pub extern "C" fn cuCtxGetCacheConfig(config: *mut c_uint) -> Code {
    look(|driver| {
        driver.context()?;
        // SAFETY: the program's place for a number.
        unsafe { give(config, 0) }
    })
}

/// The preference is only a hint, which some devices ignore.
#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSetCacheConfig(config: c_uint) -> Code {
    look(|driver| {
        driver.context()?;
        (config <= 3).then_some(()).ok_or(code::INVALID_VALUE)
    })
}

/// Checks that there is such a kernel.
fn kernel(driver: &Driver, function: u64) -> Result<(), Code> {
    let known = driver.functions.get(function);
    known.map(drop).ok_or(code::INVALID_HANDLE)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuFuncSetCacheConfig(function: u64, config: c_uint) -> Code {
    look(|driver| {
        kernel(driver, function)?;
        (config <= 3).then_some(()).ok_or(code::INVALID_VALUE)
    })
}

/// Programs may request only the two kinds of shared memory.
#[unsafe(no_mangle)]
pub extern "C" fn cuFuncSetAttribute(function: u64, attribute: c_int, _value: c_int) -> Code {
    look(|driver| {
        kernel(driver, function)?;
        let known = matches!(attribute, 8 | 9);
        known.then_some(()).ok_or(code::INVALID_VALUE)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    blocks: *mut c_int,
    function: u64,
    threads: c_int,
    _shared: usize,
    _flags: c_uint,
) -> Code {
    look(|driver| {
        kernel(driver, function)?;
        if !(1..=1024).contains(&threads) {
            return Err(code::INVALID_VALUE);
        }
        // As many blocks as there is room for their threads.
        // SAFETY: the program's place for a number.
        unsafe { give(blocks, 2048 / threads) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
    blocks: *mut c_int,
    function: u64,
    threads: c_int,
    shared: usize,
) -> Code {
    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, shared, 0)
}

/// The profiler has nothing to record.
#[unsafe(no_mangle)]
pub extern "C" fn cuProfilerStart() -> Code {
    call(|driver| driver.context().map(drop))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuProfilerStop() -> Code {
    cuProfilerStart()
}

/// Attributes of a device's only pool. Programs can only set how much it keeps, and it keeps nothing.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemPoolSetAttribute(
    _pool: *mut c_void,
    attribute: c_uint,
    value: *mut c_void,
) -> Code {
    look(|_| match (attribute, value.is_null()) {
        (1..=4, false) => Ok(()),
        _ => Err(code::INVALID_VALUE),
    })
}
