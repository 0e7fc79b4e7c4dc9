//! Maps and fills the gate region, anew in every launch.

use std::io;

use stillpoint_wrappers::dispatch::Dispatch;
use stillpoint_wrappers::gate::{
    Command, DriverState, GATE_ADDRESS, GATE_BYTES, GATE_MAGIC, GatePage, Services,
};

use stillpoint_protocol::launch::RANK_MARK;

use crate::arch::layout::{SHORT_WAY, SPRINGBOARD, SPRINGBOARD_BYTES};
use crate::arch::{PAGE, registers, short, springboard};
use crate::gate::{self, identity, signals};
use crate::loader::vdso;

// The command recognizes by this mapping that it is part of a job.
const _: () = assert!(GATE_ADDRESS as u64 == RANK_MARK);

/// Maps the region for an upper half that was built with that contract, and fills everything except what MPI and the agent provide (`dispatch`, some services).
///
/// # Errors
/// If the address is taken or the kernel refuses the mapping.
pub fn fill(services: Services, contract: u32) -> io::Result<&'static GatePage> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: MAP_FIXED_NOREPLACE maps over nothing.
    let mapped =
        unsafe { libc::mmap(GATE_ADDRESS as *mut _, GATE_BYTES, protection, flags, -1, 0) };
    if mapped != GATE_ADDRESS as *mut _ {
        return Err(if mapped == libc::MAP_FAILED {
            io::Error::last_os_error()
        } else {
            io::ErrorKind::AddrInUse.into()
        });
    }
    let page = mapped.cast::<GatePage>();
    // SAFETY: the region has just been mapped, writable and zero, and zero is a valid value of every field of the page.
    let page = unsafe {
        (*page).magic = GATE_MAGIC;
        (*page).version = contract;
        (*page).fsgsbase = u32::from(registers::fsgsbase());
        (*page).services = services;
        &*page
    };
    use std::sync::atomic::Ordering::Relaxed;
    page.command.store(Command::Run as u32, Relaxed);
    page.driver_state
        .store(DriverState::Running as u32, Relaxed);
    page.rank.store(-1, Relaxed);
    page.size.store(-1, Relaxed);

    put_code(SPRINGBOARD, SPRINGBOARD_BYTES, springboard::code())?;
    put_code(SHORT_WAY, PAGE, short::code())?;
    gate::short::fill_slots();
    signals::fill_slots();
    identity::start();
    vdso::fill_slots();
    Ok(page)
}

/// Copies code to a part of the region.
fn put_code(part: usize, bytes: usize, code: &[u8]) -> io::Result<()> {
    let protection = libc::PROT_READ | libc::PROT_EXEC;
    // SAFETY: the part is mapped, writable and as large as the code; nothing runs there before its protection is changed.
    let result = unsafe {
        std::ptr::copy_nonoverlapping(code.as_ptr(), part as *mut u8, code.len());
        libc::mprotect(part as *mut _, bytes, protection)
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Notes the tables of this launch's MPI.
pub fn set_dispatch(table: &'static Dispatch) {
    // SAFETY: the region is mapped and writable, and the application, which reads these words, does not run yet.
    let page = unsafe { &mut *(GATE_ADDRESS as *mut GatePage) };
    page.dispatch = std::ptr::from_ref(table) as u64;
    *page.direct.get_mut() = std::ptr::from_ref(&table.direct) as u64;
}
