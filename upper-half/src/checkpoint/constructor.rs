//! The library's start: when a program loads it, at its start or later, it lists in the gate page the functions that the lower half may call.
//!
//! If there is no gate, because a program inherited the library by accident, it does nothing.
//! It uses no libc and allocates nothing from the application's memory.

use core::ffi::{c_char, c_int};
use core::sync::atomic::{Ordering, fence};

use stillpoint_wrappers::contract;
use stillpoint_wrappers::gate::{self, GATE_ADDRESS, GATE_MAGIC, Reach};

use crate::checkpoint::{answer, end_object, park, standing};
use crate::ground::arch;
use crate::ground::hooks::HOOKS;
use crate::ground::own_code;
use crate::ground::upward_calls::{self, Above};
use crate::objects::operator;
use crate::operations::clock::{collective, inside, log};
use crate::operations::{devices, direct, grequest, p2p, request};

/// The contract that this library was built with. The lower half reads it in the file before any code of the library runs.
#[used]
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static stillpoint_contract: u32 = contract::VERSION;

/// Whether a lower half started this process.
pub fn gate_is_there() -> bool {
    if !arch::is_mapped(GATE_ADDRESS) {
        return false;
    }
    // SAFETY: just found mapped; whatever it is, its first bytes can be read.
    let page = unsafe { gate::page() };
    page.magic == GATE_MAGIC && page.version == contract::VERSION
}

/// A thread has just come near.
///
/// # Safety
/// As `cross_service`, on a thread that is near.
unsafe fn came_near() {
    // SAFETY: the thread is near, by the caller's promise, and so has a record; other threads change that by atomic operations only.
    unsafe {
        if direct::possible() {
            direct::keep_table();
            arch::set_reach(Reach::Direct);
            p2p::prepare_receive();
            // A thread that begins to use a device meanwhile has closed this way before or after.
            fence(Ordering::SeqCst);
            if devices::present() {
                arch::set_reach(Reach::Near);
                (*arch::record()).receive.store(0, Ordering::Relaxed);
            }
        }
    }
}

/// The functions above the ground that the ground calls.
static ABOVE: Above = Above {
    end: end_object::end,
    given_up: request::light::unfold_all,
    known_to_fortran: request::brief::no_longer,
    park_point: park::checkpoint_point,
    came_near,
};

/// Run by the dynamic loader.
unsafe extern "C" fn construct(
    _arguments: c_int,
    _vector: *const *const c_char,
    _environment: *mut *mut c_char,
) {
    if !gate_is_there() {
        return;
    }
    // SAFETY: the gate page is mapped. Threads of a program that loads this library late find the hooks empty or whole.
    unsafe {
        upward_calls::lay(&ABOVE);
        let hooks = HOOKS.place();
        (*hooks).clock_cells = collective::map_cells() as u64;
        (*hooks).refusal = answer::address();
        (*hooks).hindrances = crate::ground::hindrances::address();
        (*hooks).park = Some(park::driver);
        (*hooks).rebuild = Some(crate::checkpoint::rebuild::hook);
        (*hooks).call_op = Some(operator::call);
        (*hooks).call_grequest = Some(grequest::call);
        (*hooks).waiting = Some(p2p::waiting_hook);
        (*hooks).again = (&raw const direct::AGAIN) as u64;
        (*hooks).stands = Some(inside::stands);
        (*hooks).stand = Some(standing::hook);
        (*hooks).look_up = Some(inside::look_up);
        let code = own_code::range();
        (*hooks).closed = [code.start as u64, code.end as u64];
        (*hooks).remembered = Some(log::remembered);
        (*hooks).clock_names = collective::map_names() as u64;
        crate::ground::abi::initialise_predefined(&gate::page().services);
        crate::stubs::conversion::initialise();
        crate::operations::request::initialise();
        gate::page().hooks.store(hooks as u64, Ordering::Release);
        devices::look_at_start();
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: unsafe extern "C" fn(c_int, *const *const c_char, *mut *mut c_char) = construct;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_gate_nothing_happens() {
        assert!(!gate_is_there());
        assert_eq!(HOOKS.clock_cells, 0);
    }
}
