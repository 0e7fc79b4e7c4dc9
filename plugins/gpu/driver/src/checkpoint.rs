//! Checkpoints of another process's devices: the driver's calls, by the process's id.
//!
//! A process is *locked* (its new calls wait, its submitted work is done), then *checkpointed* (its device memory lies in its own memory, and
//! nothing of a device is open or mapped in it), *restored*, which leaves it locked, and *unlocked*. The target's own restore thread carries out
//! the two in the middle, so it must run.

use std::ffi::{CStr, c_int};
use std::ptr;

use cudarc::driver::sys::{
    CUcheckpointCheckpointArgs, CUcheckpointGpuPair, CUcheckpointLockArgs, CUcheckpointRestoreArgs,
    CUcheckpointUnlockArgs, CUuuid,
};

use crate::library::{Code, Driver, Error, Function};

/// The first CUDA whose driver has these calls.
pub const SINCE: c_int = 12080;
/// The first CUDA that can exchange devices at a restore.
pub const PAIRS_SINCE: c_int = 13000;
/// The first CUDA with which the caller can copy device memory itself.
pub const CUSTOM_STORAGE_SINCE: c_int = 13040;

const fn function(name: &'static CStr) -> Function {
    Function { name, since: SINCE }
}

const LOCK: Function = function(c"cuCheckpointProcessLock");
const CHECKPOINT: Function = function(c"cuCheckpointProcessCheckpoint");
const RESTORE: Function = function(c"cuCheckpointProcessRestore");
const UNLOCK: Function = function(c"cuCheckpointProcessUnlock");
const STATE: Function = function(c"cuCheckpointProcessGetState");
const THREAD: Function = function(c"cuCheckpointProcessGetRestoreThreadId");

/// `CUDA_ERROR_NOT_READY`: a lock timed out.
pub const NOT_READY: u32 = 600;

/// The driver's state of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Running,
    Locked,
    Checkpointed,
    Failed,
    /// Between two of these.
    Moving,
}

/// Lists the calls that the installed driver lacks.
pub fn missing(driver: &Driver) -> Vec<&'static str> {
    let all = [LOCK, CHECKPOINT, RESTORE, UNLOCK, STATE, THREAD];
    let missing = all.into_iter().filter(|one| !driver.has(*one));
    missing.filter_map(|one| one.name.to_str().ok()).collect()
}

/// Returns the driver's state of the process.
///
/// # Errors
/// The driver's, for example if it does not know the process.
pub fn state(driver: &Driver, pid: i32) -> Result<State, Error> {
    type GetState = unsafe extern "C" fn(c_int, *mut u32) -> Code;
    // SAFETY: cuCheckpointProcessGetState has the type `GetState`, its enumeration being a word; it writes one to `place`, which `ask` provides.
    let state = driver.ask::<GetState, u32>(STATE, 0, |call, place| unsafe { call(pid, place) })?;
    Ok(match state {
        0 => State::Running,
        1 => State::Locked,
        2 => State::Checkpointed,
        3 => State::Failed,
        _ => State::Moving,
    })
}

/// Returns the process's thread that carries out checkpoints and restores.
///
/// # Errors
/// The driver's.
pub fn restore_thread(driver: &Driver, pid: i32) -> Result<i32, Error> {
    type GetThread = unsafe extern "C" fn(c_int, *mut c_int) -> Code;
    // SAFETY: cuCheckpointProcessGetRestoreThreadId has the type `GetThread`; it writes one int to `place`, which `ask` provides.
    driver.ask::<GetThread, c_int>(THREAD, 0, |call, place| unsafe { call(pid, place) })
}

/// Locks the process: its new calls wait, and its submitted work is done. Fails with [`NOT_READY`] if that takes longer
/// than the time.
///
/// # Errors
/// The driver's. The process then runs on.
pub fn lock(driver: &Driver, pid: i32, milliseconds: u32) -> Result<(), Error> {
    type Lock = unsafe extern "C" fn(c_int, *mut CUcheckpointLockArgs) -> Code;
    let mut given = CUcheckpointLockArgs {
        timeoutMs: milliseconds,
        reserved0: 0,
        reserved1: [0; 7],
    };
    // SAFETY: cuCheckpointProcessLock has the type `Lock`; it reads `given`, which lives until the call returns.
    driver.call::<Lock>(LOCK, |call| unsafe { call(pid, &raw mut given) })
}

/// Moves device memory into the process's own memory, and lets go of its devices. The process must be locked.
///
/// # Errors
/// The driver's.
pub fn checkpoint(driver: &Driver, pid: i32) -> Result<(), Error> {
    type Checkpoint = unsafe extern "C" fn(c_int, *mut CUcheckpointCheckpointArgs) -> Code;
    let mut given = CUcheckpointCheckpointArgs {
        customStorageInfo_out: ptr::null_mut(),
        reserved: [0; 56],
    };
    // SAFETY: cuCheckpointProcessCheckpoint has the type `Checkpoint`; it reads `given`, which lives until the call returns and asks for no storage of the
    // caller's.
    driver.call::<Checkpoint>(CHECKPOINT, |call| unsafe { call(pid, &raw mut given) })
}

/// Brings device memory back to the devices, or to others of the same kind if `pairs` (before, now) say so. The process is then locked.
///
/// # Errors
/// The driver's.
pub fn restore(driver: &Driver, pid: i32, pairs: &[([u8; 16], [u8; 16])]) -> Result<(), Error> {
    type Restore = unsafe extern "C" fn(c_int, *mut CUcheckpointRestoreArgs) -> Code;
    let mut pairs = pairs_of(pairs);
    let mut given = CUcheckpointRestoreArgs {
        gpuPairs: match pairs.is_empty() {
            true => ptr::null_mut(),
            false => pairs.as_mut_ptr(),
        },
        gpuPairsCount: pairs.len() as u32,
        padding0: 0,
        customStorageInfo_out: ptr::null_mut(),
        reserved: [0; 40],
    };
    // SAFETY: cuCheckpointProcessRestore has the type `Restore`; it reads `given` and the pairs, which live until the call returns.
    driver.call::<Restore>(RESTORE, |call| unsafe { call(pid, &raw mut given) })
}

/// Unlocks the process, whose calls go on.
///
/// # Errors
/// The driver's.
pub fn unlock(driver: &Driver, pid: i32) -> Result<(), Error> {
    type Unlock = unsafe extern "C" fn(c_int, *mut CUcheckpointUnlockArgs) -> Code;
    let mut given = CUcheckpointUnlockArgs { reserved: [0; 8] };
    // SAFETY: cuCheckpointProcessUnlock has the type `Unlock`; it reads `given`, which lives until the call returns.
    driver.call::<Unlock>(UNLOCK, |call| unsafe { call(pid, &raw mut given) })
}

/// Converts pairs of devices, before and now, for the driver.
pub(crate) fn pairs_of(pairs: &[([u8; 16], [u8; 16])]) -> Vec<CUcheckpointGpuPair> {
    let uuid = |bytes: [u8; 16]| CUuuid {
        bytes: bytes.map(|byte| byte as _),
    };
    let pair = |(old, new): &([u8; 16], [u8; 16])| CUcheckpointGpuPair {
        oldUuid: uuid(*old),
        newUuid: uuid(*new),
    };
    pairs.iter().map(pair).collect()
}
