//! A program of a device, out of a text in PTX that the driver makes its code of.

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
    /// Loads a kernel of four numbers, or addresses, by its name.
    ///
    /// # Errors
    /// The driver's: it does not take the text, for one, or has no such device any more.
    pub fn load(&self, ptx: &CStr, name: &CStr) -> Result<Kernel, Error> {
        type Load = unsafe extern "C" fn(*mut *mut c_void, *const c_void) -> Code;
        type Get = unsafe extern "C" fn(*mut *mut c_void, *mut c_void, *const c_char) -> Code;
        self.enter()?;
        let none = ptr::null_mut();
        let module = self
            .driver
            .ask::<Load, *mut c_void>(LOAD, none, |call, place| {
                // SAFETY: the function's type; the text ends in NUL, and the place is the call's.
                unsafe { call(place, ptx.as_ptr().cast()) }
            })?;
        let found = self
            .driver
            .ask::<Get, *mut c_void>(GET, none, |call, place| {
                // SAFETY: the function's type; the module is the driver's, the name ends in NUL, and the place is the call's.
                unsafe { call(place, module, name.as_ptr()) }
            });
        match found {
            Ok(function) => Ok(Kernel { module, function }),
            Err(error) => {
                // Nobody else knows the module.
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
    /// It takes four numbers of eight bytes. What it reads and writes by them is there until the event has come, and nobody else looks at what it writes,
    /// or writes what it reads, before that.
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
            // SAFETY: the function's type; the kernel is the driver's, what it is given lives longer than the call, which copies it, and of memory the
            // caller says that it is there.
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

    /// The kernel is not used any more.
    ///
    /// # Errors
    /// The driver's.
    pub fn unload(&self, kernel: Kernel) -> Result<(), Error> {
        self.enter()?;
        self.with(UNLOAD, kernel.module)
    }
}
