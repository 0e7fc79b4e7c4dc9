//! Checkpoints of other processes.

use std::ffi::{c_char, c_int, c_uint};
use std::os::unix::ffi::OsStrExt;

use stillpoint_emulated_gpu_protocol::clock;
use stillpoint_emulated_gpu_protocol::page::Order;

use super::give;
use crate::code::{self, Code};
use crate::driver::look;
use crate::remote::Target;

/// The arguments of a lock.
#[repr(C)]
pub struct LockArguments {
    milliseconds: c_uint,
    reserved: c_uint,
    reserved_too: [u64; 7],
}

/// A device before and now.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Pair {
    before: [u8; 16],
    now: [u8; 16],
}

/// The arguments of a restore.
#[repr(C)]
pub struct RestoreArguments {
    pairs: *mut Pair,
    count: c_uint,
    padding: c_uint,
    custom: *mut *mut crate::lending::Information,
    reserved: [c_char; 40],
}

/// The arguments of a checkpoint.
#[repr(C)]
pub struct CheckpointArguments {
    custom: *mut *mut crate::lending::Information,
    reserved: [c_char; 56],
}

/// Checks that the driver is set up, without staying inside, since the next steps may take long.
fn ready() -> Result<(), Code> {
    match look(|_| Ok(())) {
        code::SUCCESS => Ok(()),
        code => Err(code),
    }
}

/// Returns an argument of a program, or `None` for a null pointer.
///
/// # Safety
/// The pointer is null or leads to such an argument.
unsafe fn argument<'a, T>(pointer: *mut T) -> Option<&'a T> {
    // SAFETY: as the caller says.
    unsafe { pointer.as_ref() }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCheckpointProcessGetState(pid: c_int, state: *mut c_uint) -> Code {
    code::of(ready().and_then(|()| {
        Target::find(pid)?.ask(Order::Look, None)?;
        let found = Target::find(pid)?.state()?;
        // SAFETY: the program's place for a number.
        unsafe { give(state, found as c_uint) }
    }))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCheckpointProcessGetRestoreThreadId(pid: c_int, tid: *mut c_int) -> Code {
    code::of(ready().and_then(|()| {
        let found = Target::find(pid)?.restore_thread()?;
        // SAFETY: the program's place for a number.
        unsafe { give(tid, found) }
    }))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCheckpointProcessLock(pid: c_int, arguments: *mut LockArguments) -> Code {
    // SAFETY: an argument of the program.
    let arguments = unsafe { argument(arguments) };
    if arguments.is_some_and(|given| given.reserved != 0 || given.reserved_too != [0; 7]) {
        return code::INVALID_VALUE;
    }
    let until = arguments
        .filter(|given| given.milliseconds > 0)
        .map(|given| clock::now() + u64::from(given.milliseconds) * 1_000_000);
    code::of(ready().and_then(|()| {
        let target = Target::find(pid)?;
        target.ask(Order::Lock { until }, until).map(drop)
    }))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCheckpointProcessCheckpoint(
    pid: c_int,
    arguments: *mut CheckpointArguments,
) -> Code {
    // SAFETY: an argument of the program.
    let custom = unsafe { argument(arguments) }.map_or(std::ptr::null_mut(), |given| given.custom);
    let order = Order::Checkpoint {
        custom: !custom.is_null(),
    };
    code::of(ready().and_then(|()| {
        let lent = Target::find(pid)?.ask(order, None)?;
        crate::lending::give(pid, custom, &lent)
    }))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCheckpointProcessRestore(pid: c_int, arguments: *mut RestoreArguments) -> Code {
    // SAFETY: an argument of the program.
    let arguments = unsafe { argument(arguments) };
    let custom = arguments.map_or(std::ptr::null_mut(), |given| given.custom);
    let pairs = match arguments {
        Some(given) if !given.pairs.is_null() => {
            // SAFETY: the program's list has so many entries.
            let list = unsafe { std::slice::from_raw_parts(given.pairs, given.count as usize) };
            list.iter().map(|pair| (pair.before, pair.now)).collect()
        }
        _ => vec![],
    };
    let mut folder = None;
    let known = look(|driver| {
        folder = Some(String::from_utf8_lossy(driver.folder.as_os_str().as_bytes()).into_owned());
        Ok(())
    });
    let Some(folder) = folder else { return known };
    let order = Order::Restore {
        custom: !custom.is_null(),
        folder,
        pairs,
    };
    code::of(Target::find(pid).and_then(|target| {
        let lent = target.ask(order, None)?;
        crate::lending::give(pid, custom, &lent)
    }))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCheckpointProcessUnlock(pid: c_int, _arguments: *mut [u64; 8]) -> Code {
    code::of(ready().and_then(|()| {
        let target = Target::find(pid)?;
        target.ask(Order::Unlock, None).map(drop)
    }))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCheckpointOperationComplete(handle: u64) -> Code {
    code::of(ready().and_then(|()| crate::lending::complete(handle)))
}
