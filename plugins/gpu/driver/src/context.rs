//! A device of the caller's own process: its memory, pinned host memory, streams, events and copies.

use std::ffi::{CStr, c_int, c_uint, c_void};
use std::ptr;

use crate::library::{Code, Driver, Error, Function};

const fn function(name: &'static CStr, since: c_int) -> Function {
    Function { name, since }
}

const GET: Function = function(c"cuDeviceGet", 2000);
const RETAIN: Function = function(c"cuDevicePrimaryCtxRetain", 7000);
const RELEASE: Function = function(c"cuDevicePrimaryCtxRelease", 11000);
const SET_CURRENT: Function = function(c"cuCtxSetCurrent", 4000);
const SYNCHRONIZE: Function = function(c"cuCtxSynchronize", 2000);
const CAN_ACCESS: Function = function(c"cuDeviceCanAccessPeer", 4000);
const ENABLE_ACCESS: Function = function(c"cuCtxEnablePeerAccess", 4000);
const INFO: Function = function(c"cuMemGetInfo", 3020);
const ALLOCATE: Function = function(c"cuMemAlloc", 3020);
const FREE: Function = function(c"cuMemFree", 3020);
const PIN: Function = function(c"cuMemHostRegister", 6050);
const UNPIN: Function = function(c"cuMemHostUnregister", 4000);
const STREAM: Function = function(c"cuStreamCreate", 2000);
const END_STREAM: Function = function(c"cuStreamDestroy", 4000);
const EVENT: Function = function(c"cuEventCreate", 2000);
const END_EVENT: Function = function(c"cuEventDestroy", 4000);
const RECORD: Function = function(c"cuEventRecord", 2000);
const QUERY: Function = function(c"cuEventQuery", 2000);
const COPY: Function = function(c"cuMemcpyAsync", 4000);

/// `CUDA_ERROR_OUT_OF_MEMORY`.
pub const OUT_OF_MEMORY: u32 = 2;
/// `CUDA_ERROR_NOT_READY`: the work before an event is not done.
const NOT_READY: u32 = 600;
/// `CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED`.
const ENABLED_ALREADY: u32 = 704;
/// `CU_STREAM_NON_BLOCKING`: independent of the default stream.
const NON_BLOCKING: c_uint = 1;
/// `CU_EVENT_DISABLE_TIMING`: faster, since times are measured elsewhere.
const NO_TIMING: c_uint = 2;
/// `CU_MEMHOSTREGISTER_PORTABLE`: pinned for all devices.
const PORTABLE: c_uint = 1;

/// The primary context of a device. The driver keeps it until it is dropped.
pub struct Context<'d> {
    pub(crate) driver: &'d Driver,
    device: c_int,
    handle: *mut c_void,
}

/// A queue of copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream(pub(crate) *mut c_void);

/// A moment in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event(*mut c_void);

type OfHandle = unsafe extern "C" fn(*mut c_void) -> Code;
type Make = unsafe extern "C" fn(*mut *mut c_void, c_uint) -> Code;

impl<'d> Context<'d> {
    /// Opens the context of a device, by its number in the driver's order.
    ///
    /// # Errors
    /// The driver's.
    pub fn of(driver: &'d Driver, number: usize) -> Result<Context<'d>, Error> {
        type Get = unsafe extern "C" fn(*mut c_int, c_int) -> Code;
        type Retain = unsafe extern "C" fn(*mut *mut c_void, c_int) -> Code;
        // The driver has no device with a number beyond an int.
        let number = c_int::try_from(number).unwrap_or(c_int::MAX);
        // SAFETY: cuDeviceGet has the type `Get`; it writes one int to `place`, which `ask` provides.
        let device =
            driver.ask::<Get, c_int>(GET, 0, |call, place| unsafe { call(place, number) })?;
        let handle =
            driver.ask::<Retain, *mut c_void>(RETAIN, ptr::null_mut(), |call, place| {
                // SAFETY: cuDevicePrimaryCtxRetain has the type `Retain`; it writes one handle to `place`, which `ask` provides, and `device` is the driver's.
                unsafe { call(place, device) }
            })?;
        Ok(Context {
            driver,
            device,
            handle,
        })
    }

    /// Makes this the current context of the calling thread.
    pub(crate) fn enter(&self) -> Result<(), Error> {
        self.with(SET_CURRENT, self.handle)
    }

    pub(crate) fn with(&self, function: Function, handle: *mut c_void) -> Result<(), Error> {
        self.driver.call::<OfHandle>(function, |call| {
            // SAFETY: each caller's function has the type `OfHandle`; it passes a handle that the driver has given, of the kind that the function takes, or
            // memory that was pinned.
            unsafe { call(handle) }
        })
    }

    fn make(&self, function: Function, flags: c_uint) -> Result<*mut c_void, Error> {
        self.enter()?;
        self.driver
            .ask::<Make, *mut c_void>(function, ptr::null_mut(), |call, place| {
                // SAFETY: each caller's function has the type `Make`; it writes one handle to `place`, which `ask` provides.
                unsafe { call(place, flags) }
            })
    }

    /// Lets this device write to another's memory if it may, and returns whether it may.
    ///
    /// # Errors
    /// The driver's.
    pub fn reach(&self, other: &Context<'_>) -> Result<bool, Error> {
        type Can = unsafe extern "C" fn(*mut c_int, c_int, c_int) -> Code;
        type Enable = unsafe extern "C" fn(*mut c_void, c_uint) -> Code;
        let can = self
            .driver
            .ask::<Can, c_int>(CAN_ACCESS, 0, |call, place| {
                // SAFETY: cuDeviceCanAccessPeer has the type `Can`; it writes one int to `place`, which `ask` provides, and both devices are the driver's.
                unsafe { call(place, self.device, other.device) }
            })?;
        if can == 0 {
            return Ok(false);
        }
        self.enter()?;
        let enabled = self.driver.call::<Enable>(ENABLE_ACCESS, |call| {
            // SAFETY: cuCtxEnablePeerAccess has the type `Enable`; the context is the driver's and retained by `other`. No flags are defined.
            unsafe { call(other.handle, 0) }
        });
        match enabled {
            Err(error) if error.code() != Some(ENABLED_ALREADY) => Err(error),
            _ => Ok(true),
        }
    }

    /// Returns the free bytes on the device.
    ///
    /// # Errors
    /// The driver's.
    pub fn free_bytes(&self) -> Result<u64, Error> {
        type Info = unsafe extern "C" fn(*mut usize, *mut usize) -> Code;
        self.enter()?;
        let mut total = 0;
        let free = self.driver.ask::<Info, usize>(INFO, 0, |call, free| {
            // SAFETY: cuMemGetInfo has the type `Info`; it writes one number to each place, which live until the call returns.
            unsafe { call(free, &raw mut total) }
        })?;
        Ok(free as u64)
    }

    /// Allocates memory of the device.
    ///
    /// # Errors
    /// The driver's, for example [`OUT_OF_MEMORY`].
    pub fn allocate(&self, bytes: u64) -> Result<u64, Error> {
        type Allocate = unsafe extern "C" fn(*mut u64, usize) -> Code;
        self.enter()?;
        self.driver
            .ask::<Allocate, u64>(ALLOCATE, 0, |call, place| {
                // SAFETY: cuMemAlloc has the type `Allocate`; it writes one address to `place`, which `ask` provides.
                unsafe { call(place, bytes as usize) }
            })
    }

    /// Frees memory of the device, once all work with it is done.
    ///
    /// # Errors
    /// The driver's.
    pub fn free(&self, address: u64) -> Result<(), Error> {
        type Free = unsafe extern "C" fn(u64) -> Code;
        self.enter()?;
        self.driver.call::<Free>(FREE, |call| {
            // SAFETY: cuMemFree has the type `Free`; the driver refuses an address that is none of its own.
            unsafe { call(address) }
        })
    }

    /// Pins memory, so that all devices can copy to and from it by themselves.
    ///
    /// # Errors
    /// The driver's.
    ///
    /// # Safety
    /// It is mapped, and stays so until [`Context::unpin`].
    pub unsafe fn pin(&self, memory: *mut u8, bytes: u64) -> Result<(), Error> {
        type Pin = unsafe extern "C" fn(*mut c_void, usize, c_uint) -> Code;
        self.enter()?;
        self.driver.call::<Pin>(PIN, |call| {
            // SAFETY: cuMemHostRegister has the type `Pin`; the caller says that the memory is mapped, and stays so until it is unpinned.
            unsafe { call(memory.cast(), bytes as usize, PORTABLE) }
        })
    }

    /// Unpins memory.
    ///
    /// # Errors
    /// The driver's.
    ///
    /// # Safety
    /// [`Context::pin`] pinned it, and neither the program nor a copy uses it any more.
    pub unsafe fn unpin(&self, memory: *mut u8) -> Result<(), Error> {
        self.enter()?;
        self.with(UNPIN, memory.cast())
    }

    /// Makes a stream of the device.
    ///
    /// # Errors
    /// The driver's.
    pub fn stream(&self) -> Result<Stream, Error> {
        self.make(STREAM, NON_BLOCKING).map(Stream)
    }

    /// Makes an event of the device.
    ///
    /// # Errors
    /// The driver's.
    pub fn event(&self) -> Result<Event, Error> {
        self.make(EVENT, NO_TIMING).map(Event)
    }

    /// Ends a stream. Its submitted work is still done.
    ///
    /// # Errors
    /// The driver's.
    pub fn end_stream(&self, stream: Stream) -> Result<(), Error> {
        self.enter()?;
        self.with(END_STREAM, stream.0)
    }

    /// Ends an event.
    ///
    /// # Errors
    /// The driver's.
    pub fn end_event(&self, event: Event) -> Result<(), Error> {
        self.enter()?;
        self.with(END_EVENT, event.0)
    }

    /// Begins a copy between any two places that the driver knows, and records an event behind it.
    ///
    /// # Errors
    /// The driver's.
    ///
    /// # Safety
    /// Host memory in both ranges is pinned, stays so until the event has completed, and no other code accesses it before that.
    pub unsafe fn copy(
        &self,
        stream: Stream,
        to: u64,
        from: u64,
        bytes: u64,
        behind: Event,
    ) -> Result<(), Error> {
        type Copy = unsafe extern "C" fn(u64, u64, usize, *mut c_void) -> Code;
        self.enter()?;
        self.driver.call::<Copy>(COPY, |call| {
            // SAFETY: cuMemcpyAsync has the type `Copy`; the caller says that host memory in both ranges is pinned and left alone until the event has come.
            unsafe { call(to, from, bytes as usize, stream.0) }
        })?;
        self.record(behind, stream)
    }

    /// Records an event behind the work of a stream. The context is entered.
    pub(crate) fn record(&self, event: Event, stream: Stream) -> Result<(), Error> {
        type Record = unsafe extern "C" fn(*mut c_void, *mut c_void) -> Code;
        self.driver.call::<Record>(RECORD, |call| {
            // SAFETY: cuEventRecord has the type `Record`; the driver has given both handles.
            unsafe { call(event.0, stream.0) }
        })
    }

    /// Tells whether all work before an event is done.
    ///
    /// # Errors
    /// The driver's, including an error of an earlier copy.
    pub fn has_come(&self, event: Event) -> Result<bool, Error> {
        self.enter()?;
        match self.with(QUERY, event.0) {
            Ok(()) => Ok(true),
            Err(error) if error.code() == Some(NOT_READY) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Waits until all work of this process on the device is done.
    ///
    /// # Errors
    /// The driver's, including an error of that work.
    pub fn settle(&self) -> Result<(), Error> {
        type Settle = unsafe extern "C" fn() -> Code;
        self.enter()?;
        self.driver.call::<Settle>(SYNCHRONIZE, |call| {
            // SAFETY: cuCtxSynchronize has the type `Settle`, and takes nothing.
            unsafe { call() }
        })
    }
}

impl Drop for Context<'_> {
    fn drop(&mut self) {
        type Release = unsafe extern "C" fn(c_int) -> Code;
        // A lost device returns its error here too, and it does not matter.
        let _ = self.driver.call::<Release>(RELEASE, |call| {
            // SAFETY: cuDevicePrimaryCtxRelease has the type `Release`; `of` has retained this device's context once.
            unsafe { call(self.device) }
        });
    }
}
