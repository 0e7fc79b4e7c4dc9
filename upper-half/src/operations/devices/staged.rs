//! Host memory in the place of a device's, for one call or for the life of its request.

use core::ffi::{CStr, c_int, c_void};

use super::driver::{self, Driver, Failed};
use super::layout::{self, Run};
use super::{Buffer, BufferUse, ERR_OTHER, attach, say};
use crate::ground::abi::{PlaceOf, RequestHandle};
use crate::ground::crossing;
use crate::ground::object::Object;
use crate::objects::errhandler::raise;
use crate::operations::request::{self, Request};

/// A buffer of a device and the host memory that stands for it.
struct Copy {
    /// The device's address of the buffer, and the distance to its first data.
    address: u64,
    first: isize,
    runs: Vec<Run>,
    way: BufferUse,
    host: Vec<u8>,
}

impl Copy {
    /// The address that MPI gets for the buffer.
    fn pointer(&self) -> *mut c_void {
        self.host
            .as_ptr()
            .wrapping_offset(-self.first)
            .cast_mut()
            .cast()
    }

    fn of_device(&self, run: &Run) -> u64 {
        self.address.wrapping_add_signed(run.at as i64)
    }

    fn of_host(&self, run: &Run) -> usize {
        (run.at - self.first) as usize
    }

    /// Fetches the data from the device. Buffers that are only written are fetched too: MPI may write to a part of one, and all of it goes back.
    fn fetch(&mut self, driver: &Driver) -> Result<(), Failed> {
        let Some(some) = self.runs.first() else {
            return Ok(());
        };
        let data: usize = self.runs.iter().map(|run| run.bytes).sum();
        // Reading the bytes between does no harm.
        let whole = Run {
            at: self.first,
            bytes: self.host.len(),
        };
        let close = self.host.len() <= data.saturating_mul(4);
        let runs: &[Run] = if close { &[whole] } else { &self.runs };
        let address = self.of_device(some) as usize;
        let host = self.host.as_mut_ptr();
        driver.in_context_of(address, || {
            for run in runs {
                let at = (run.at - self.first) as usize;
                // SAFETY: each run lies in the span that the host memory is for.
                unsafe { driver.read(host.add(at), self.of_device(run), run.bytes)? };
            }
            Ok(())
        })
    }

    /// Copies the data to the device, if MPI writes to them.
    fn give_back(&self, driver: &Driver) -> Result<(), Failed> {
        let some = match self.runs.first() {
            Some(some) if self.way == BufferUse::Out => some,
            _ => return Ok(()),
        };
        let address = self.of_device(some);
        driver.in_context_of(address as usize, || {
            for run in &self.runs {
                // SAFETY: each run lies in the span that the host memory is for.
                let from = unsafe { self.host.as_ptr().add(self.of_host(run)) };
                // SAFETY: that many bytes are there.
                unsafe { driver.write(self.of_device(run), from, run.bytes)? };
            }
            driver.arrived(address)
        })
    }
}

/// The buffers of a call, at least one of them a device's.
pub struct Staged {
    on: *mut Object,
    name: &'static CStr,
    pointers: Vec<*mut c_void>,
    copies: Vec<Copy>,
    /// MPI's output is on the device already.
    has_landed: bool,
}

impl Staged {
    /// Stages the buffers of a call. Returns `None` if no buffer is a device's, or if MPI itself shall report the error in its arguments. Input is copied
    /// at once, unless the call only makes a request (`later`).
    ///
    /// # Safety
    /// Inside a stub; buffers and handles as the application gave them; `on` null or an object, for errors.
    pub unsafe fn new<const N: usize>(
        on: *mut Object,
        name: &'static CStr,
        later: bool,
        buffers: [Buffer; N],
    ) -> Option<Result<Staged, c_int>> {
        let driver = driver::driver()?;
        let mut staged = Staged {
            on,
            name,
            pointers: Vec::with_capacity(N),
            copies: Vec::new(),
            has_landed: false,
        };
        for buffer in buffers {
            let mut pointer = buffer.pointer;
            // SAFETY: the datatypes are null or handles, by the caller's promise; `runs` has the real MPI look at them.
            let runs = unsafe { layout::runs(&buffer.parts)? };
            let span = layout::span(&runs);
            let first = pointer.addr().wrapping_add_signed(span.start);
            if !span.is_empty() && driver.is_of_a_device(first) {
                let mut copy = Copy {
                    address: pointer.addr() as u64,
                    first: span.start,
                    runs,
                    way: buffer.way,
                    host: vec![0; span.len()],
                };
                if !later && let Err(failed) = copy.fetch(&driver) {
                    // SAFETY: `on` is null or an object, by the caller's promise, and the thread is inside a stub.
                    return Some(Err(unsafe { failed_on(on, name, &failed) }));
                }
                pointer = copy.pointer();
                staged.copies.push(copy);
            }
            staged.pointers.push(pointer);
        }
        (!staged.copies.is_empty()).then_some(Ok(staged))
    }

    /// The address that the call gets in the place of a buffer, by the buffer's number.
    pub fn at(&self, index: usize) -> *mut c_void {
        self.pointers[index]
    }

    /// Ends a blocking call: the device gets its output, even if the call failed. Returns the stub's return value.
    ///
    /// # Safety
    /// On a thread of the application.
    pub unsafe fn end(mut self, code: c_int) -> c_int {
        let _inside = crossing::enter();
        // SAFETY: inside; the object that errors are raised on.
        match unsafe { self.land() } {
            0 => code,
            // SAFETY: inside, and the object is the call's own.
            failed if code == 0 => unsafe { raise(self.on, failed, self.name) },
            _ => code,
        }
    }

    /// Ends a call that has made a request: the buffers are the request's from now on.
    ///
    /// # Safety
    /// On a thread of the application; `place` is where the call has put its request, if its code is 0.
    pub unsafe fn of_request(self, code: c_int, place: PlaceOf<RequestHandle>) -> c_int {
        if code != 0 || place.is_null() {
            return code;
        }
        let _inside = crossing::enter();
        // SAFETY: inside; the request that was just made.
        unsafe {
            match request::of(place.get()) {
                Ok(Some(request)) => attach(request, Box::new(self)),
                // It is over already.
                _ => return self.end(code),
            }
        }
        code
    }

    /// Copies MPI's output to the device, once. Returns the error of that, which is not raised yet, or 0.
    ///
    /// # Safety
    /// Inside a stub.
    unsafe fn land(&mut self) -> c_int {
        if core::mem::replace(&mut self.has_landed, true) {
            return 0;
        }
        let Some(driver) = driver::driver() else {
            return 0;
        };
        for copy in &self.copies {
            if let Err(failed) = copy.give_back(&driver) {
                tell(self.name, &failed);
                return ERR_OTHER;
            }
        }
        0
    }
}

/// # Safety
/// Inside a stub; `on` null or an object.
unsafe fn failed_on(on: *mut Object, name: &'static CStr, failed: &Failed) -> c_int {
    tell(name, failed);
    // SAFETY: the caller is inside a stub, and `on` is null or an object.
    unsafe { raise(on, ERR_OTHER, name) }
}

fn tell(name: &CStr, failed: &Failed) {
    say(
        name,
        format_args!(
            "{} of {} bytes at {:#x} of a GPU's memory failed with error {} of CUDA",
            failed.call, failed.bytes, failed.address, failed.code
        ),
    );
}

/// The completion of a request with staged buffers.
///
/// # Safety
/// Inside a stub; `context` is the one attached to a live request.
pub unsafe fn land(context: *mut ()) -> c_int {
    // SAFETY: `context` is the box that `attach` has given the request, which lives as long as that; a request's completion is run by one thread at a time.
    unsafe { (*context.cast::<Staged>()).land() }
}

/// The staged buffers of a request, if it has any.
///
/// # Safety
/// A live request that no other thread completes or looks at meanwhile; the result must not be used once the request ends.
unsafe fn of<'a>(request: *mut Request) -> Option<&'a mut Staged> {
    // SAFETY: the request's completion is `land`, so its context is the box that `attach` gave it, and nothing else refers to that now.
    unsafe { belongs_to(&*request).then(|| &mut *(*request).context.cast::<Staged>()) }
}

/// Whether a request has staged buffers.
fn belongs_to(request: &Request) -> bool {
    let land: request::Completion = land;
    request
        .completion
        .is_some_and(|it| it as usize == land as usize)
}

/// The application frees an active request with staged buffers. A request that sends is left to itself with the memory that MPI still reads. A request that
/// receives cannot be: its data would not reach the device, because no call would learn of its end. Returns `None` if the request has no such buffers.
///
/// # Safety
/// Inside a stub; a live request that is active.
#[cold]
#[inline(never)]
pub unsafe fn freed(request: *mut Request) -> Option<Result<(), c_int>> {
    // SAFETY: the request is alive, by the caller's promise, and MPI lets one thread at a time work on a request.
    let staged = unsafe { of(request) }?;
    let Some(copy) = staged.copies.iter().find(|copy| copy.way == BufferUse::Out) else {
        return Some(Ok(()));
    };
    say(
        c"MPI_Request_free",
        format_args!(
            "what is received at {:#x}, a GPU's memory, would not get there without MPI_Wait, MPI_Test or their kin; the request stays",
            copy.address
        ),
    );
    Some(Err(ERR_OTHER))
}

/// A call has seen a request's end without telling it (`MPI_Request_get_status`): the application may look at the data.
/// Returns the error of bringing the data to the device, or 0.
///
/// # Safety
/// Inside a stub; a live request, whose operation is over.
pub unsafe fn landed(request: *mut Request) -> c_int {
    // SAFETY: the request is alive and its operation over, by the caller's promise, so the real MPI writes to the buffers no more.
    unsafe { of(request).map_or(0, |staged| staged.land()) }
}

/// Prepares a persistent request that is about to be started: its input is the device's current data.
///
/// # Safety
/// Inside a stub; a live request.
pub unsafe fn starting(request: *mut Request) -> Result<(), c_int> {
    // SAFETY: the request is alive, by the caller's promise, and inactive, so the real MPI does not use the buffers yet.
    let Some(staged) = (unsafe { of(request) }) else {
        return Ok(());
    };
    let Some(driver) = driver::driver() else {
        return Ok(());
    };
    staged.has_landed = false;
    for copy in &mut staged.copies {
        if let Err(failed) = copy.fetch(&driver) {
            // SAFETY: the caller is inside a stub, and `on` is the object that the call was given.
            return Err(unsafe { failed_on(staged.on, staged.name, &failed) });
        }
    }
    Ok(())
}

/// Drops the staged buffers of a request that ends.
///
/// # Safety
/// `context` is the one attached, and used no more.
pub unsafe fn forget(context: *mut ()) {
    // SAFETY: the box that `attach` took apart.
    drop(unsafe { Box::from_raw(context.cast::<Staged>()) });
}
