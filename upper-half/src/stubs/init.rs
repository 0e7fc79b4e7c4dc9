//! The start and the end of MPI, and the questions about both.

use core::ffi::{c_char, c_int};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use stillpoint_wrappers::gate::{DriverState, HandleKind, ThreadRecord};

use crate::communicators;
use crate::ground::abi;
use crate::ground::crossing::{self, cross, gate};
use crate::ground::hooks::HOOKS;
use crate::ground::lock::SpinLock;
use crate::ground::object::{Comm, Object};
use crate::ground::{arch, shared};
use crate::objects::errhandler::{self, raise};
use crate::objects::outcome::class;
use crate::objects::{attribute, datatype, error_codes, group};
use crate::operations::clock::{collective, two_phase};
use crate::stubs::crash;
#[cfg(not(application = "openmpi"))]
use crate::stubs::session;
use stillpoint_wrappers::standard;

/// Standard-ABI values of the thread levels.
const FUNNELED: i32 = 1024;
const SERIALIZED: i32 = 2048;
const MULTIPLE: i32 = 4096;
/// Standard-ABI values of the two communicators that MPI begins with.
const WORLD: i32 = 257;
const SELF: i32 = 258;
/// The real MPI has started.
static STARTED: AtomicBool = AtomicBool::new(false);
/// Held while the real MPI starts: other threads that open sessions wait for that.
static STARTING: SpinLock<()> = SpinLock::new(());
/// It has ended.
static ENDED: AtomicBool = AtomicBool::new(false);
/// The application has called `MPI_Init`.
static ASKED_FOR: AtomicBool = AtomicBool::new(false);
/// It has called `MPI_Finalize`.
static FINALIZED: AtomicBool = AtomicBool::new(false);
/// The level that the application was granted.
static PROVIDED: AtomicI32 = AtomicI32::new(0);
/// The virtual thread id of the thread that started MPI.
static MAIN: AtomicI32 = AtomicI32::new(0);

/// `MPI_COMM_WORLD`.
pub fn world() -> *mut Object {
    abi::predefined(HandleKind::Communicator, WORLD)
}

/// `MPI_COMM_SELF`.
pub fn self_communicator() -> *mut Object {
    abi::predefined(HandleKind::Communicator, SELF)
}

/// Starts MPI for `MPI_Init` at a level, unless a session has done so. Returns the granted level.
unsafe fn begin(required: i32, name: &'static core::ffi::CStr) -> Result<i32, c_int> {
    // SAFETY: the caller is inside a stub, with nothing locked.
    unsafe {
        if ASKED_FOR.load(Ordering::Relaxed) {
            return Err(raise(ptr::null_mut(), class::OTHER, name));
        }
        let _one = STARTING.lock();
        if !STARTED.load(Ordering::Relaxed) {
            start(required, name)?;
        }
        ASKED_FOR.store(true, Ordering::Relaxed);
        Ok(PROVIDED.load(Ordering::Relaxed))
    }
}

/// Starts MPI for a session at a level, unless another call has done so.
///
/// # Safety
/// Inside a stub.
#[cfg(not(application = "openmpi"))]
pub unsafe fn begin_session(required: i32) -> Result<(), c_int> {
    extern "C" fn at_exit() {
        let _inside = crossing::enter();
        // SAFETY: inside, on the thread that ends the process.
        unsafe {
            if active() && !ASKED_FOR.load(Ordering::Relaxed) && !session::are_open() {
                end();
            }
        }
    }
    // SAFETY: the caller is inside a stub; `at_exit` is a function of this library, which is never unloaded.
    unsafe {
        let _one = STARTING.lock();
        if !STARTED.load(Ordering::Relaxed) {
            start(required, c"MPI_Session_init")?;
            libc::atexit(at_exit);
        }
    }
    match active() {
        true => Ok(()),
        // SAFETY: the caller is inside a stub.
        false => Err(unsafe { raise(ptr::null_mut(), class::OTHER, c"MPI_Session_init") }),
    }
}

/// Ends the real MPI if the application has no other use of it: no session is open any more.
///
/// # Safety
/// Inside a stub, nothing locked.
#[cfg(not(application = "openmpi"))]
pub unsafe fn last_session_is_over() -> c_int {
    match active() && FINALIZED.load(Ordering::Relaxed) {
        // SAFETY: the caller is inside a stub with nothing locked; `active` says that MPI has started and not ended.
        true => unsafe { end() },
        false => 0,
    }
}

/// Starts the real MPI at a level. Returns the granted level.
unsafe fn start(required: i32, name: &'static core::ffi::CStr) -> Result<i32, c_int> {
    // SAFETY: the caller is inside a stub, and its lock keeps other threads from starting MPI at the same time.
    unsafe {
        // With SERIALIZED one thread may be parked, pulling messages in, while another is in a call.
        let asked = if required == SERIALIZED {
            MULTIPLE
        } else {
            required
        };
        // Before the real MPI makes threads, as its own handlers would be.
        if crash::ARE_REPORTED {
            crash::install();
        }
        let mut granted = 0;
        let code = cross(|dispatch| {
            (dispatch.init_thread)(ptr::null_mut(), ptr::null_mut(), asked, &mut granted)
        });
        if code != 0 {
            return Err(abi::error_from_neutral(code));
        }
        STARTED.store(true, Ordering::Relaxed);
        two_phase::choose();
        let provided = if required == SERIALIZED {
            granted.min(SERIALIZED)
        } else {
            granted
        };
        PROVIDED.store(provided, Ordering::Relaxed);
        HOOKS.mpi_thread_level.store(granted, Ordering::Relaxed);
        if provided >= SERIALIZED {
            shared::set_concurrent();
        }
        become_driver();
        keep_errors();
        name_world();
        datatype::note_sizes();
        errhandler::initialise();
        group::initialise();
        if let Err(error) = communicators::initialise() {
            return Err(raise(ptr::null_mut(), error, name));
        }
        attribute::initialise(error_codes::last_used());
        gate()
            .driver_state
            .store(DriverState::Running as u32, Ordering::SeqCst);
        gate().mpi_active.store(1, Ordering::SeqCst);
        Ok(provided)
    }
}

/// Marks this thread as the driver thread: the one that parks.
unsafe fn become_driver() {
    // SAFETY: the thread has a record of its own.
    unsafe {
        let record: *mut ThreadRecord = arch::record();
        (*record).driver.store(1, Ordering::SeqCst);
        MAIN.store(
            (*record).virtual_tid.load(Ordering::Relaxed) as i32,
            Ordering::Relaxed,
        );
    }
}

/// Has the lower half return its errors: the application's handlers are run above.
unsafe fn keep_errors() {
    let handler = abi::predefined(HandleKind::Errhandler, standard::ERRORS_RETURN);
    for communicator in [world(), self_communicator()] {
        // SAFETY: inside a stub or in a restart; predefined objects.
        unsafe {
            let (word, handler) = ((*communicator).lower, (*handler).lower);
            cross(|dispatch| (dispatch.comm_set_errhandler)(word, handler));
        }
    }
}

/// Whether MPI has started and not ended.
pub fn active() -> bool {
    STARTED.load(Ordering::Relaxed) && !ENDED.load(Ordering::Relaxed)
}

/// Tells the lower half of a restart the settings that `MPI_Init` told the first one.
///
/// # Safety
/// On the main thread of a restart, MPI started, predefined objects initialised.
pub unsafe fn rebuild() {
    if STARTED.load(Ordering::Relaxed) {
        // SAFETY: the caller is on the main thread of a restart, in which MPI has started, so the real MPI knows its predefined communicators.
        unsafe { keep_errors() };
    }
}

/// Fills in the known facts about the two communicators that MPI begins with.
unsafe fn name_world() {
    // SAFETY: inside a stub; predefined objects.
    unsafe {
        let world = world();
        let word = (*world).lower;
        let (mut rank, mut size) = (0, 0);
        cross(|dispatch| {
            (dispatch.comm_rank)(word, &mut rank);
            (dispatch.comm_size)(word, &mut size)
        });
        (*world).rank = rank;
        (*world).size = size;
        let alone = self_communicator();
        (*alone).rank = 0;
        (*alone).size = 1;
        gate().rank.store(rank, Ordering::SeqCst);
        gate().size.store(size, Ordering::SeqCst);
    }
}

/// `MPI_Init`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn init(_argc: *mut c_int, _argv: *mut *mut *mut c_char) -> c_int {
    let _inside = crossing::enter();
    // SAFETY: the stub is inside from here on, with nothing locked.
    match unsafe { begin(0, c"MPI_Init") } {
        Ok(_) => 0,
        Err(code) => code,
    }
}

/// `MPI_Init_thread`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn init_thread(
    _argc: *mut c_int,
    _argv: *mut *mut *mut c_char,
    required: c_int,
    provided: *mut c_int,
) -> c_int {
    let _inside = crossing::enter();
    // SAFETY: the stub is inside from here on; MPI demands a writable place for the level.
    unsafe {
        match begin(abi::threads_to_neutral(required), c"MPI_Init_thread") {
            Ok(granted) => {
                *provided = abi::threads_from_neutral(granted);
                0
            }
            Err(code) => code,
        }
    }
}

/// `MPI_Finalize`: collective over all, after the attributes of `MPI_COMM_SELF` and `MPI_COMM_WORLD` are gone.
///
/// # Safety
/// As the MPI function.
pub unsafe fn finalize() -> c_int {
    if active() {
        // SAFETY: MPI is running, and no thread is inside.
        unsafe {
            crate::stubs::isendrecv::finish(true);
            #[cfg(not(application = "openmpi"))]
            crate::operations::buffered::finish();
        }
    }
    let _inside = crossing::enter();
    // SAFETY: inside a stub, nothing locked.
    unsafe {
        if !ASKED_FOR.load(Ordering::Relaxed) || FINALIZED.load(Ordering::Relaxed) {
            return raise(ptr::null_mut(), class::OTHER, c"MPI_Finalize");
        }
        // MPI demands it of `MPI_COMM_SELF`, and the libraries do it for `MPI_COMM_WORLD` too, afterwards. Errors of the application's delete functions do not
        // keep MPI from ending.
        for lasting in [self_communicator(), world()] {
            let _ = attribute::delete_all(lasting);
        }
        #[cfg(not(application = "openmpi"))]
        if session::are_open() {
            FINALIZED.store(true, Ordering::Relaxed);
            return 0;
        }
        let code = end();
        FINALIZED.store(true, Ordering::Relaxed);
        code
    }
}

/// Ends the real MPI, on all ranks.
///
/// # Safety
/// Inside a stub, nothing locked; it must have started, and not ended.
unsafe fn end() -> c_int {
    // SAFETY: the caller is inside a stub with nothing locked, MPI runs, and so `MPI_COMM_WORLD` has its word and its clock.
    unsafe {
        // Other ranks may compute for long. The barrier waits for them as any operation does. The end itself takes no time, and binds: a process that a
        // suspend ends inside the real MPI's `MPI_Finalize` could not call it a second time.
        let clock = (*world()).clock;
        let code = collective::clocked(clock, |dispatch| (dispatch.barrier)((*world()).lower));
        if code != 0 {
            return raise(ptr::null_mut(), code, c"MPI_Finalize");
        }
        communicators::finish_all();
        let code = collective::clocked_once(clock, || cross(|dispatch| (dispatch.finalize)()));
        gate().mpi_active.store(0, Ordering::SeqCst);
        ENDED.store(true, Ordering::Relaxed);
        abi::error_from_neutral(code)
    }
}

/// `MPI_Initialized`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn initialized(flag: *mut c_int) -> c_int {
    // SAFETY: MPI demands a writable flag.
    unsafe { *flag = c_int::from(ASKED_FOR.load(Ordering::Relaxed)) };
    0
}

/// `MPI_Finalized`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn finalized(flag: *mut c_int) -> c_int {
    // SAFETY: MPI demands a writable place for the flag; it is written once.
    unsafe { *flag = c_int::from(FINALIZED.load(Ordering::Relaxed)) };
    0
}

/// `MPI_Query_thread`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn query_thread(provided: *mut c_int) -> c_int {
    // SAFETY: MPI demands a writable place for the level.
    unsafe { *provided = abi::threads_from_neutral(PROVIDED.load(Ordering::Relaxed)) };
    0
}

/// `MPI_Is_thread_main`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn is_thread_main(flag: *mut c_int) -> c_int {
    let _inside = crossing::enter();
    // SAFETY: MPI demands a writable flag; the thread is inside a stub, so it has a record.
    unsafe {
        let tid = (*arch::record()).virtual_tid.load(Ordering::Relaxed) as i32;
        *flag = c_int::from(tid == MAIN.load(Ordering::Relaxed));
    }
    0
}

/// `MPI_Abort`.
///
/// # Safety
/// As the MPI function.
pub unsafe fn abort(comm: Comm, errorcode: c_int) -> c_int {
    let _inside = crossing::enter();
    // SAFETY: the real MPI checks the communicator's word. The code is the job's exit status, not an error class.
    unsafe {
        let word = abi::word(HandleKind::Communicator, comm);
        cross(|dispatch| (dispatch.abort)(word, errorcode))
    }
}

const _: () = assert!(FUNNELED < SERIALIZED && SERIALIZED < MULTIPLE);
