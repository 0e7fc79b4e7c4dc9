//! The common part of a fresh start and a restart: the gate, the lower half's threads and handlers, the filter.

use std::io;
use std::sync::atomic::Ordering;

use stillpoint_protocol::launch::Launch;
use stillpoint_wrappers::gate::{GatePage, Services, page};

use super::error::LaunchError;
use crate::arch::registers;
use crate::arch::springboard::Piece;
use crate::executor::files;
use crate::gate::{descriptors, filter, holdings, rehearse, signals, stop};
use crate::ground::{inherited, wake};
use crate::launch::region;
use crate::threads::{areas, near};
use crate::{agent, capture, mpi, parts};

/// The variable that tells a split process that `execve` has started which filter it has inherited.
const FILTER: &str = "STILLPOINT_FILTER";

/// The mask of the lower half's threads: all signals, so that the application's signals reach the application's threads. SIGSYS is not in it, since these
/// threads may run upper code (a restart rebuilds MPI's objects), whose trapped calls must not end the process.
pub const LOWER_MASK: u64 = !(1 << (libc::SIGSYS - 1));

/// Maps and fills the gate region for an upper half that was built with that contract, and notes which descriptors the application has from the start.
pub fn prepare(contract: u32) -> Result<&'static GatePage, LaunchError> {
    registers::probe();
    if let Some(signal) = std::env::var("STILLPOINT_STOP_SIGNAL")
        .ok()
        .and_then(|text| text.parse().ok())
        && (libc::SIGRTMIN()..=libc::SIGRTMAX()).contains(&signal)
    {
        signals::set_stop_signal(signal);
    }
    let page =
        region::fill(services(), contract).map_err(LaunchError::set_up("filling the gate page"))?;
    inherited::descriptors().for_each(descriptors::note);
    Ok(page)
}

/// Gives the gate page the table of MPI's functions, when the library that has them is loaded.
pub fn offer_mpi() {
    // A process that has not joined its job yet does so when it starts MPI.
    let dispatch = mpi::prepare(mpi::interruptible::extra(), agent::join_late);
    region::set_dispatch(dispatch);
}

/// Returns the lower half's services for the upper half besides MPI; the agent adds its own.
fn services() -> Services {
    // SAFETY: the springboard's piece is a function without arguments, at this address once the region is filled; it is called only after that.
    let park_self =
        unsafe { std::mem::transmute::<usize, unsafe extern "C" fn()>(Piece::ParkSelf.address()) };
    Services {
        raise: Some(wake::raise),
        borrow_thread_area: Some(areas::borrow),
        come_near: mpi::backend::BACKEND.near.then_some(near::come_near),
        park_self: Some(park_self),
        futex_wait: Some(futex_wait),
        print: Some(print),
        make_callback: Some(mpi::callbacks::make_callback),
        free_callback: Some(mpi::callbacks::free_callback),
        predefined: Some(mpi::predefined::predefined),
        receive: Some(mpi::progress::receive),
    }
}

/// `Services::futex_wait`.
///
/// # Safety
/// `word` must be alive until this returns.
unsafe extern "C" fn futex_wait(
    word: *const std::sync::atomic::AtomicU32,
    expected: u32,
    nanoseconds: u64,
) {
    // SAFETY: the caller, the upper half, gives a word that is alive until this returns.
    crate::arch::syscall::futex_wait(unsafe { &*word }, expected, nanoseconds);
}

/// `Services::print`.
///
/// # Safety
/// `bytes` must lead to `count` bytes.
unsafe extern "C" fn print(bytes: *const u8, count: usize) {
    // SAFETY: the caller, the upper half, gives `count` bytes that are alive until this returns.
    unsafe { crate::arch::syscall::syscall3(libc::SYS_write, 2, bytes as usize, count) };
}

/// Installs the handlers and the filter. With all signals blocked, on the main thread.
pub fn begin(launch: Option<&Launch>, low_text: filter::LowText) -> Result<(), LaunchError> {
    capture::remember(launch);
    files::remember(launch);
    parts::remember();
    holdings::inherit();
    if restarted() {
        areas::start_keeper().map_err(LaunchError::set_up(
            "starting the thread that keeps thread areas",
        ))?;
    }
    rehearse::start().map_err(LaunchError::set_up("starting the rehearsal of restarts"))?;
    install_handlers().map_err(LaunchError::set_up("installing signal handlers"))?;
    if !std::env::var(FILTER).is_ok_and(|filter| covers(&filter, low_text)) {
        filter::install(low_text, restarted())
            .map_err(LaunchError::set_up("installing the system call filter"))?;
    }
    Ok(())
}

/// Whether the process has been restarted.
fn restarted() -> bool {
    // SAFETY: `prepare` has mapped the gate page, for as long as the process lives.
    unsafe { page() }.restarted.load(Ordering::Relaxed) != 0
}

/// Whether an inherited filter traps all calls that have to be trapped here.
fn covers(filter: &str, low_text: filter::LowText) -> bool {
    filter == filter_value(low_text, true)
        || (!restarted() && filter == filter_value(low_text, false))
}

fn install_handlers() -> io::Result<()> {
    // The trap's handler must not be interrupted; a stopped thread can still trap, and crash.
    signals::install_own(
        libc::SIGSYS,
        crate::gate::trap::on_sigsys as *const () as usize,
        u64::MAX,
    )?;
    let crashes = [
        libc::SIGSYS,
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGFPE,
        libc::SIGILL,
        libc::SIGTRAP,
        libc::SIGABRT,
    ];
    let left = crashes
        .iter()
        .fold(0u64, |mask, signal| mask | 1 << (signal - 1));
    signals::install_own(
        signals::stop_signal(),
        stop::on_stop as *const () as usize,
        !left,
    )
}

fn filter_value(low_text: filter::LowText, restarted: bool) -> String {
    let calls = if restarted { "restarted" } else { "launched" };
    match low_text {
        None => format!("{calls},arena"),
        Some((start, end)) => format!("{calls},arena,{start:#x},{end:#x}"),
    }
}

/// Returns the variable that tells a program started by `execve` which filter it inherits.
pub fn filter_variable(low_text: filter::LowText) -> String {
    format!("{FILTER}={}", filter_value(low_text, restarted()))
}
