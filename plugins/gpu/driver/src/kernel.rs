//! A program of a device: a text in PTX, which the driver compiles.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;

use crate::context::{Context, Event, Stream};
use crate::library::{Code, Error, Function};

const fn function(name: &'static CStr, since: c_int) -> Function {
    Function { name, since }
}

const LOAD: Function = function(c"cuModuleLoadData", 2000);
const UNLOAD: Function = function(c"cuModuleUnload", 2000);
const GET: Function = function(c"cuModuleGetFunction", 2000);
const LAUNCH: Function = function(c"cuLaunchKernel", 4000);

/// A kernel, in the context that has loaded it.
#[derive(Debug, PartialEq, Eq)]
pub struct Kernel {
    module: *mut c_void,
    function: *mut c_void,
}

impl Context<'_> {
    /// Loads a kernel that takes four numbers or addresses, by its name.
    ///
    /// # Errors
    /// The driver's: for example, it rejects the text, or has lost the device.
    pub fn load(&self, ptx: &CStr, name: &CStr) -> Result<Kernel, Error> {
        type Load = unsafe extern "C" fn(*mut *mut c_void, *const c_void) -> Code;
        type Get = unsafe extern "C" fn(*mut *mut c_void, *mut c_void, *const c_char) -> Code;
        self.enter()?;
        let none = ptr::null_mut();
        let module = self
            .driver
            .ask::<Load, *mut c_void>(LOAD, none, |call, place| {
                // SAFETY: cuModuleLoadData has the type `Load`; the text ends in NUL, and it writes one handle to `place`, which `ask` provides.
                unsafe { call(place, ptx.as_ptr().cast()) }
            })?;
        let found = self
            .driver
            .ask::<Get, *mut c_void>(GET, none, |call, place| {
                // SAFETY: cuModuleGetFunction has the type `Get`; the module has just been loaded, the name ends in NUL, and it writes one handle to `place`,
                // which `ask` provides.
                unsafe { call(place, module, name.as_ptr()) }
            });
        match found {
            Ok(function) => Ok(Kernel { module, function }),
            Err(error) => {
                // No other code knows the module.
                drop(self.with(UNLOAD, module));
                Err(error)
            }
        }
    }

    /// Begins a kernel with so many thread blocks of so many threads, and records an event behind it.
    ///
    /// # Errors
    /// The driver's.
    ///
    /// # Safety
    /// The kernel takes four numbers of eight bytes. The memory that it reads and writes by them exists until the event has completed. Until then no
    /// other code reads what it writes, or writes what it reads.
    pub unsafe fn launch(
        &self,
        kernel: &Kernel,
        (blocks, threads): (u32, u32),
        numbers: [u64; 4],
        stream: Stream,
        behind: Event,
    ) -> Result<(), Error> {
        type Launch = unsafe extern "C" fn(
            *mut c_void,
            c_uint,
            c_uint,
            c_uint,
            c_uint,
            c_uint,
            c_uint,
            c_uint,
            *mut c_void,
            *mut *mut c_void,
            *mut *mut c_void,
        ) -> Code;
        self.enter()?;
        let given = numbers.each_ref().map(ptr::from_ref);
        let mut given = given.map(|number| number.cast_mut().cast::<c_void>());
        self.driver.call::<Launch>(LAUNCH, |call| {
            // SAFETY: cuLaunchKernel has the type `Launch`; the driver has given the kernel and the stream, and copies the numbers before it returns. The
            // caller says that the memory they lead to is there.
            unsafe {
                call(
                    kernel.function,
                    blocks,
                    1,
                    1,
                    threads,
                    1,
                    1,
                    0,
                    stream.0,
                    given.as_mut_ptr(),
                    ptr::null_mut(),
                )
            }
        })?;
        self.record(behind, stream)
    }

    /// Unloads a kernel, which is no longer in use.
    ///
    /// # Errors
    /// The driver's.
    pub fn unload(&self, kernel: Kernel) -> Result<(), Error> {
        self.enter()?;
        self.with(UNLOAD, kernel.module)
    }
}
