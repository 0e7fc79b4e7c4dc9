//! The application's own CUDA driver, as far as buffers need it: the kind of an address, and copies.
//!
//! It is the library that the application has loaded, found in its namespace; it is never loaded here. Copies are the synchronous ones on
//! the default stream of the context that the memory belongs to. So they come after the work that the application has begun there, as in an MPI with
//! GPU support.
//!
//! The driver may keep a call waiting until a checkpoint is over: while the devices are locked. So the thread counts as outside of MPI in it, and can be
//! stopped there. A checkpoint would wait for a thread that is inside.
//!
//! Rules: with the upper half's FS, no lock held and nothing of the lower half on the stack; a pending call can be carried on after a restart. The
//! application's `errno` and its thread's current context stay as they are.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::sync::atomic::{AtomicBool, Ordering};

use crate::ground::arch;
use crate::ground::crossing::StayKind;
use crate::ground::lock::SpinLock;

type Code = c_int;

/// `CU_POINTER_ATTRIBUTE_CONTEXT`, `CU_POINTER_ATTRIBUTE_MEMORY_TYPE`, `CU_MEMORYTYPE_DEVICE`.
const CONTEXT: c_uint = 1;
const MEMORY_TYPE: c_uint = 2;
const DEVICE: c_uint = 2;

/// The functions, at addresses that stay the same after a restart.
#[derive(Clone, Copy)]
pub struct Driver {
    attribute: unsafe extern "C" fn(*mut c_void, c_uint, u64) -> Code,
    from_device: unsafe extern "C" fn(*mut c_void, u64, usize) -> Code,
    to_device: unsafe extern "C" fn(u64, *const c_void, usize) -> Code,
    synchronize: unsafe extern "C" fn(*mut c_void) -> Code,
    push: unsafe extern "C" fn(*mut c_void) -> Code,
    pop: unsafe extern "C" fn(*mut *mut c_void) -> Code,
}

/// A failed call of the driver's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    pub call: &'static str,
    pub code: Code,
    pub address: u64,
    pub bytes: usize,
}

static FOUND: SpinLock<Option<Driver>> = SpinLock::new(None);
/// Whether [`FOUND`] is filled, so that most calls take no lock.
static IS_FOUND: AtomicBool = AtomicBool::new(false);

/// The driver, once the application has loaded it.
pub fn driver() -> Option<Driver> {
    if IS_FOUND.load(Ordering::Acquire) {
        return *FOUND.lock();
    }
    // SAFETY: functions of the driver's, by their names and with their documented types.
    let found = keeping_errno(|| unsafe { find() })?;
    *FOUND.lock() = Some(found);
    IS_FOUND.store(true, Ordering::Release);
    Some(found)
}

/// # Safety
/// With the upper half's FS.
unsafe fn find() -> Option<Driver> {
    // SAFETY: `dlopen` of what is loaded already, which stays loaded; each function has the type that its name says.
    unsafe {
        let library = libc::dlopen(
            c"libcuda.so.1".as_ptr(),
            libc::RTLD_LAZY | libc::RTLD_NOLOAD,
        );
        if library.is_null() {
            return None;
        }
        let look = |name: &CStr| {
            let found = libc::dlsym(library, name.as_ptr().cast::<c_char>());
            (!found.is_null()).then_some(found)
        };
        Some(Driver {
            attribute: core::mem::transmute::<
                *mut c_void,
                unsafe extern "C" fn(*mut c_void, c_uint, u64) -> Code,
            >(look(c"cuPointerGetAttribute")?),
            from_device: core::mem::transmute::<
                *mut c_void,
                unsafe extern "C" fn(*mut c_void, u64, usize) -> Code,
            >(look(c"cuMemcpyDtoH_v2")?),
            to_device: core::mem::transmute::<
                *mut c_void,
                unsafe extern "C" fn(u64, *const c_void, usize) -> Code,
            >(look(c"cuMemcpyHtoD_v2")?),
            synchronize: core::mem::transmute::<
                *mut c_void,
                unsafe extern "C" fn(*mut c_void) -> Code,
            >(look(c"cuStreamSynchronize")?),
            push: core::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void) -> Code>(
                look(c"cuCtxPushCurrent_v2")?,
            ),
            pop: core::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut *mut c_void) -> Code>(
                look(c"cuCtxPopCurrent_v2")?,
            ),
        })
    }
}

fn keeping_errno<R>(call: impl FnOnce() -> R) -> R {
    // SAFETY: the place is the calling thread's own `errno`.
    unsafe {
        let place = libc::__errno_location();
        let before = *place;
        let result = call();
        *place = before;
        result
    }
}

/// Runs a call of the driver's, in which the thread may be stopped.
fn asked(call: impl FnOnce() -> Code) -> Code {
    // SAFETY: stubs run on threads with a record; what stands still here is the application's and the stub's own.
    unsafe {
        let before = arch::inside();
        arch::set_inside(StayKind::No as u32);
        let code = call();
        arch::set_inside(before);
        code
    }
}

impl Driver {
    /// Whether an address belongs to a device's memory. Memory that device and host share (managed) counts as such.
    pub fn is_of_a_device(&self, address: usize) -> bool {
        let mut kind: c_uint = 0;
        let code = keeping_errno(|| {
            // SAFETY: the attribute is of that size.
            asked(|| unsafe {
                (self.attribute)((&raw mut kind).cast(), MEMORY_TYPE, address as u64)
            })
        });
        code == 0 && kind == DEVICE
    }

    /// Runs copies with the context of an address as the thread's current one.
    pub fn in_context_of(
        &self,
        address: usize,
        copies: impl FnOnce() -> Result<(), Failed>,
    ) -> Result<(), Failed> {
        keeping_errno(|| {
            let mut context: *mut c_void = core::ptr::null_mut();
            // SAFETY: the attribute is of that size; what is pushed is popped again. Memory of a pool has no context, and the current one does.
            unsafe {
                let place = (&raw mut context).cast();
                let code = asked(|| (self.attribute)(place, CONTEXT, address as u64));
                if code != 0 || context.is_null() {
                    return copies();
                }
                let pushed = asked(|| (self.push)(context));
                check("cuCtxPushCurrent", pushed, address as u64, 0)?;
                let result = copies();
                asked(|| (self.pop)(&raw mut context));
                result
            }
        })
    }

    /// Copies from a device.
    ///
    /// # Safety
    /// `to` must have room for `bytes` bytes; within [`in_context_of`](Self::in_context_of).
    pub unsafe fn read(&self, to: *mut u8, from: u64, bytes: usize) -> Result<(), Failed> {
        // SAFETY: `to` has room, and the context is the address's, by the caller's promise; the driver checks the device's address.
        let code = asked(|| unsafe { (self.from_device)(to.cast(), from, bytes) });
        check("cuMemcpyDtoH", code, from, bytes)
    }

    /// Copies to a device.
    ///
    /// # Safety
    /// `from` must have `bytes` readable bytes; within [`in_context_of`](Self::in_context_of).
    pub unsafe fn write(&self, to: u64, from: *const u8, bytes: usize) -> Result<(), Failed> {
        // SAFETY: `from` is readable, and the context is the address's, by the caller's promise; the driver checks the device's address.
        let code = asked(|| unsafe { (self.to_device)(to, from.cast(), bytes) });
        check("cuMemcpyHtoD", code, to, bytes)
    }

    /// Waits until copies to a device have arrived: a copy from pageable memory may still be under way when it returns.
    pub fn arrived(&self, address: u64) -> Result<(), Failed> {
        // SAFETY: null stands for the default stream, which always exists.
        let code = asked(|| unsafe { (self.synchronize)(core::ptr::null_mut()) });
        check("cuStreamSynchronize", code, address, 0)
    }
}

fn check(call: &'static str, code: Code, address: u64, bytes: usize) -> Result<(), Failed> {
    match code {
        0 => Ok(()),
        code => Err(Failed {
            call,
            code,
            address,
            bytes,
        }),
    }
}
