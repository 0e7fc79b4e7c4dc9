//! The way up: functions in this half's text that the real MPI calls, and that call the application's functions through `UpperHooks`, under the upper half's
//! thread pointer.
//!
//! `MPI_User_function` has no argument for a context, so every operator gets a small function of its own, made at run time, that adds it. Generalized requests
//! carry their context as `extra_state`.
//!
//! Between the two switches of the thread pointer, this half's libc and runtime are not used. Callbacks come on threads of the upper half only: the real MPI
//! reduces in the thread that waits, and progress threads that would reduce are switched off (`mpi/backend`). A library that calls back on another thread
//! ends the process with a reason: the application's code needs storage of its own threads.

use core::ffi::c_void;
use core::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use super::library::{self, abi, ffi};
use stillpoint_wrappers::gate::{self, Callback, Inside, UpperHooks};
use stillpoint_wrappers::neutral::{Status, Word};

use crate::arch::{registers, trampoline};
use crate::ground::say;

/// Returns the functions and data that the upper half has registered.
fn hooks() -> Option<&'static UpperHooks> {
    // SAFETY: the gate page is mapped; the pointer is null or that of the hooks, which are registered before MPI starts and never freed.
    unsafe {
        let hooks = gate::page().hooks.load(Ordering::Relaxed) as *const UpperHooks;
        hooks.as_ref()
    }
}

/// Ends the process: the real MPI calls the application on a thread that is not the application's, and must not go on without an answer.
#[cold]
fn not_the_applications() -> ! {
    say::line(format_args!(
        "MPI called a function of the program on a thread of its own, where it cannot run; switch off MPI's progress threads, and run the job again"
    ));
    // SAFETY: the call ends the process.
    unsafe { libc::_exit(1) }
}

/// Runs `call` under the upper half's thread pointer. The application's code runs there, in which a thread could be stopped, so the thread counts as inside,
/// even if the stub has not set that.
///
/// # Safety
/// On a thread that is in the lower half; `call` must only call the upper half.
#[inline(always)]
unsafe fn ascend<R>(call: impl FnOnce() -> R) -> R {
    if registers::gs() == 0 {
        not_the_applications();
    }
    // SAFETY: GS leads to the record of a thread of the upper half, in which the crossing has noted both thread pointers.
    unsafe {
        let record = registers::record();
        let (upper, lower) = ((*record).fs_upper, (*record).fs_lower);
        let inside = &(*record).inside;
        let before = inside.load(Ordering::Relaxed);
        inside.store(before.max(Inside::Stub as u32), Ordering::SeqCst);
        // A near thread has it in place.
        let switched = registers::area() == lower;
        if switched {
            registers::set_fs(upper);
        }
        let result = call();
        if switched {
            registers::set_fs(lower);
        }
        inside.store(before, Ordering::SeqCst);
        result
    }
}

/// An `MPI_User_function` with its context.
unsafe extern "C" fn operate(
    input: *mut c_void,
    inout: *mut c_void,
    len: *mut i32,
    datatype: *mut library::Handle,
    context: u64,
) {
    let Some(call) = hooks().and_then(|hooks| hooks.call_op) else {
        return;
    };
    // SAFETY: MPI gives the arguments of an operator's function, and the upper half made the operator with this context.
    unsafe {
        let word = library::word(*datatype);
        ascend(|| call(context, input.cast(), inout.cast(), len, word));
    }
}

/// `MPI_Grequest_query_function`.
unsafe extern "C" fn query(context: *mut c_void, status: *mut abi::Status) -> i32 {
    // SAFETY: MPI gives a status that this function is to fill, and the upper half made the request with this context.
    unsafe {
        let mut neutral: Status = library::written(&*status, 0);
        let error = grequest(
            Callback::GrequestQuery,
            context,
            (&raw mut neutral).expose_provenance() as u64,
        );
        *status = library::given(&neutral);
        error
    }
}

/// `MPI_Grequest_free_function`.
unsafe extern "C" fn free(context: *mut c_void) -> i32 {
    // SAFETY: the upper half made the request with this context.
    unsafe { grequest(Callback::GrequestFree, context, 0) }
}

/// `MPI_Grequest_cancel_function`.
unsafe extern "C" fn cancel(context: *mut c_void, complete: i32) -> i32 {
    // SAFETY: the upper half made the request with this context.
    unsafe { grequest(Callback::GrequestCancel, context, complete as u64) }
}

/// # Safety
/// On a thread that is in the lower half; `context` must be that of a request of the upper half.
unsafe fn grequest(kind: Callback, context: *mut c_void, argument: u64) -> i32 {
    let Some(call) = hooks().and_then(|hooks| hooks.call_grequest) else {
        return 0;
    };
    // SAFETY: the caller gives the upper half's context, in the lower half.
    let error =
        unsafe { ascend(|| call(kind as u32, context.expose_provenance() as u64, argument)) };
    abi::error_from_neutral(error)
}

/// The size of a made function, and of a block of memory for them.
const SLOT: usize = trampoline::BYTES;
const BLOCK: usize = 4096;

/// Memory for made functions: written through one address, executed at another.
struct Block {
    written: usize,
    executed: usize,
}

struct Made {
    blocks: Vec<Block>,
    free: Vec<(usize, usize)>,
}

static MADE: Mutex<Made> = Mutex::new(Made {
    blocks: Vec::new(),
    free: Vec::new(),
});

impl Block {
    fn new() -> std::io::Result<Self> {
        // SAFETY: the kernel chooses free addresses for both mappings of the file; they outlive its descriptor, which is this function's own.
        unsafe {
            let file = libc::memfd_create(c"stillpoint-callbacks".as_ptr(), libc::MFD_CLOEXEC);
            if file < 0 || libc::ftruncate(file, BLOCK as libc::off_t) != 0 {
                return Err(std::io::Error::last_os_error());
            }
            let map = |protection| {
                let place = core::ptr::null_mut();
                libc::mmap(place, BLOCK, protection, libc::MAP_SHARED, file, 0)
            };
            let written = map(libc::PROT_READ | libc::PROT_WRITE);
            let executed = map(libc::PROT_READ | libc::PROT_EXEC);
            let error = std::io::Error::last_os_error();
            libc::close(file);
            if written == libc::MAP_FAILED || executed == libc::MAP_FAILED {
                return Err(error);
            }
            Ok(Self {
                written: written as usize,
                executed: executed as usize,
            })
        }
    }
}

/// Implements `Services::make_callback`. Returns 0 if there is no memory for it.
///
/// # Safety
/// `context` must be what the upper half's functions take for callbacks of this kind.
pub unsafe extern "C" fn make_callback(kind: u32, context: u64) -> u64 {
    if kind == Callback::GrequestQuery as u32 {
        return query as *const () as u64;
    }
    if kind == Callback::GrequestFree as u32 {
        return free as *const () as u64;
    }
    if kind == Callback::GrequestCancel as u32 {
        return cancel as *const () as u64;
    }
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if made.free.is_empty() {
        let Ok(block) = Block::new() else { return 0 };
        let slots = (0..BLOCK / SLOT).map(|slot| slot * SLOT);
        made.free
            .extend(slots.map(|at| (block.written + at, block.executed + at)));
        made.blocks.push(block);
    }
    let Some((written, executed)) = made.free.pop() else {
        return 0;
    };
    let code = trampoline::code(operate as *const () as usize, context);
    // SAFETY: the slot is writable, has SLOT bytes, and belongs to no function, so nothing executes it.
    unsafe { core::ptr::copy_nonoverlapping(code.as_ptr(), written as *mut u8, SLOT) };
    executed as u64
}

/// Implements `Services::free_callback`: the operator has been freed.
///
/// # Safety
/// Nothing may call the function any more.
pub unsafe extern "C" fn free_callback(function: u64) {
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let executed = function as usize;
    let found = made
        .blocks
        .iter()
        .find(|block| (block.executed..block.executed + BLOCK).contains(&executed))
        .map(|block| block.written + (executed - block.executed));
    if let Some(written) = found {
        made.free.push((written, executed));
    }
}

/// Datatypes reach operators as words.
const _: () = assert!(size_of::<ffi::MPI_Datatype>() == size_of::<Word>());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_made_function_is_executable_and_reused() {
        // SAFETY: there are no hooks without a gate, and the functions are not called; each has SLOT bytes that can be read.
        unsafe {
            let one = make_callback(Callback::Operator as u32, 1);
            let two = make_callback(Callback::Operator as u32, 2);
            assert!(one != 0 && two != 0 && one != two);
            let code = core::slice::from_raw_parts(one as *const u8, SLOT);
            assert_eq!(&code[trampoline::ARGUMENT_AT..][..8], &1u64.to_le_bytes());
            free_callback(one);
            assert_eq!(make_callback(Callback::Operator as u32, 3), one);
        }
    }
}
