//! Custom storage: the driver lends another process's device memory to this one during a checkpoint or a restore, and this process copies it.

use std::ffi::{CStr, c_int, c_uint, c_void};
use std::ptr;

use cudarc::driver::sys::{
    CUcheckpointCheckpointArgs, CUcheckpointCustomStorageInfo, CUcheckpointGpuPair,
    CUcheckpointOperationHandle, CUcheckpointRestoreArgs,
};

use crate::checkpoint::{CUSTOM_STORAGE_SINCE, pairs_of};
use crate::library::{Code, Driver, Error, Function};

const fn function(name: &'static CStr, since: c_int) -> Function {
    Function { name, since }
}

const CHECKPOINT: Function = function(c"cuCheckpointProcessCheckpoint", CUSTOM_STORAGE_SINCE);
const RESTORE: Function = function(c"cuCheckpointProcessRestore", CUSTOM_STORAGE_SINCE);
const COMPLETE: Function = function(c"cuCheckpointOperationComplete", CUSTOM_STORAGE_SINCE);
const ATTRIBUTE: Function = function(c"cuPointerGetAttribute", 4000);

/// `CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL`.
const DEVICE_ORDINAL: c_uint = 9;

/// Lent memory of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lent {
    /// The device, by its number in the driver's order.
    pub device: usize,
    pub address: u64,
    pub bytes: u64,
}

/// An operation that waits for its copies.
#[derive(Debug, PartialEq, Eq)]
pub struct Storage {
    handle: CUcheckpointOperationHandle,
    pub lent: Vec<Lent>,
}

/// Tells whether the driver can lend memory.
pub fn is_there(driver: &Driver) -> bool {
    driver.has(COMPLETE)
}

/// Borrows a locked process's device memory, to be copied away before [`complete`]. Then the process is checkpointed.
///
/// # Errors
/// The driver's.
pub fn checkpoint(driver: &Driver, pid: i32) -> Result<Storage, Error> {
    type Checkpoint = unsafe extern "C" fn(c_int, *mut CUcheckpointCheckpointArgs) -> Code;
    let mut info: *mut CUcheckpointCustomStorageInfo = ptr::null_mut();
    let mut given = CUcheckpointCheckpointArgs {
        customStorageInfo_out: &raw mut info,
        reserved: [0; 56],
    };
    // SAFETY: cuCheckpointProcessCheckpoint has the type `Checkpoint`; it reads `given` and writes to `info`, which both live until the call returns.
    driver.call::<Checkpoint>(CHECKPOINT, |call| unsafe { call(pid, &raw mut given) })?;
    // SAFETY: the call has succeeded, so `info` is null or what the driver has just written.
    unsafe { read(driver, info) }
}

/// Borrows a checkpointed process's device memory, on other devices if `pairs` (before, now) say so, to be filled before [`complete`].
/// Then the process is locked.
///
/// # Errors
/// The driver's.
pub fn restore(
    driver: &Driver,
    pid: i32,
    pairs: &[([u8; 16], [u8; 16])],
) -> Result<Storage, Error> {
    type Restore = unsafe extern "C" fn(c_int, *mut CUcheckpointRestoreArgs) -> Code;
    let mut info: *mut CUcheckpointCustomStorageInfo = ptr::null_mut();
    let mut pairs: Vec<CUcheckpointGpuPair> = pairs_of(pairs);
    let mut given = CUcheckpointRestoreArgs {
        gpuPairs: match pairs.is_empty() {
            true => ptr::null_mut(),
            false => pairs.as_mut_ptr(),
        },
        gpuPairsCount: pairs.len() as u32,
        padding0: 0,
        customStorageInfo_out: &raw mut info,
        reserved: [0; 40],
    };
    // SAFETY: cuCheckpointProcessRestore has the type `Restore`; it reads `given` and the pairs, and writes to `info`, which all live until the call returns.
    driver.call::<Restore>(RESTORE, |call| unsafe { call(pid, &raw mut given) })?;
    // SAFETY: the call has succeeded, so `info` is null or what the driver has just written.
    unsafe { read(driver, info) }
}

/// Ends an operation, and gives lent memory back.
///
/// # Errors
/// The driver's.
pub fn complete(driver: &Driver, storage: Storage) -> Result<(), Error> {
    type Complete = unsafe extern "C" fn(CUcheckpointOperationHandle) -> Code;
    driver.call::<Complete>(COMPLETE, |call| {
        // SAFETY: cuCheckpointOperationComplete has the type `Complete`; the driver has given the handle, which is used once, since `storage` is taken.
        unsafe { call(storage.handle) }
    })
}

/// Reads the driver's list of lent memory.
///
/// # Safety
/// The pointer is null or the driver has just written it.
unsafe fn read(
    driver: &Driver,
    info: *const CUcheckpointCustomStorageInfo,
) -> Result<Storage, Error> {
    // SAFETY: the caller says that the pointer is null or leads to what the driver has just written.
    let Some(info) = (unsafe { info.as_ref() }) else {
        return Err(Error::Missing("custom storage"));
    };
    let devices = match info.perDeviceData.is_null() {
        true => &[][..],
        // SAFETY: the pointer is not null, and the driver's list has that many entries until the operation is complete.
        false => unsafe {
            std::slice::from_raw_parts(info.perDeviceData, info.deviceCount as usize)
        },
    };
    let lent = devices.iter().map(|one| {
        Ok(Lent {
            device: device_of(driver, one.devPtr)?,
            address: one.devPtr,
            bytes: one.size as u64,
        })
    });
    Ok(Storage {
        handle: info.handle,
        lent: lent.collect::<Result<_, Error>>()?,
    })
}

/// Returns the device of memory, by its number in the driver's order.
fn device_of(driver: &Driver, address: u64) -> Result<usize, Error> {
    type Attribute = unsafe extern "C" fn(*mut c_void, c_uint, u64) -> Code;
    let number = driver.ask::<Attribute, c_int>(ATTRIBUTE, 0, |call, place| {
        // SAFETY: cuPointerGetAttribute has the type `Attribute`; this attribute is an int, for which `place` has room.
        unsafe { call(place.cast(), DEVICE_ORDINAL, address) }
    })?;
    Ok(usize::try_from(number).unwrap_or(usize::MAX))
}
