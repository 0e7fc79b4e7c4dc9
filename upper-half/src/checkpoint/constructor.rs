//! The library's start. Before anything of the application runs, it lists in the gate page the functions that the lower
//! half may call, and takes itself out of the environment that children inherit.
//!
//! If there is no gate, because a program inherited the library by accident, it does nothing.
//! It uses no libc and allocates nothing from the application's memory.

use core::ffi::{c_char, c_int};
use core::sync::atomic::{Ordering, fence};

use stillpoint_wrappers::contract;
use stillpoint_wrappers::gate::{self, FOR_LOADER, GATE_ADDRESS, GATE_MAGIC, Reach};

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
    environment: *mut *mut c_char,
) {
    if !gate_is_there() {
        return;
    }
    // SAFETY: the loader gives the environment; no other thread exists yet.
    unsafe {
        leave_environment(environment);
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

/// An entry of the auxiliary vector that says nothing (`elf.h`).
const AT_IGNORE: usize = 1;

/// Removes from the environment the variables that are for the dynamic loader alone ([`FOR_LOADER`]). The auxiliary vector lies behind the list's NULL
/// and cannot be moved, for the loader knows where it is. So the NULL goes where the first of these variables was, and the words from
/// there on become entries of the vector that say nothing. Code that walks on from the list finds the vector, as on every stack that the
/// kernel has made.
///
/// # Safety
/// `environment` must be a null-terminated list of strings, writable, the one that the program was started with; or null.
unsafe fn leave_environment(environment: *mut *mut c_char) {
    if environment.is_null() {
        return;
    }
    // SAFETY: within the list, up to its NULL.
    unsafe {
        let (mut entries, mut first) = (0, None);
        while let Some(text) = (*environment.add(entries)).as_ref() {
            if first.is_none() && core::ffi::CStr::from_ptr(text) == FOR_LOADER {
                first = Some(entries);
            }
            entries += 1;
        }
        let Some(first) = first.filter(|first| (entries - first) % 2 == 0) else {
            return;
        };
        *environment.add(first) = core::ptr::null_mut();
        for pair in (first + 1..entries).step_by(2) {
            *environment.add(pair) = core::ptr::without_provenance_mut(AT_IGNORE);
            *environment.add(pair + 1) = core::ptr::null_mut();
        }
    }
}

#[cfg(test)]
mod tests {
    use core::ffi::CStr;

    use super::*;

    /// The list as a walker finds it, and the two words behind its NULL.
    fn left(list: &[&CStr]) -> (Vec<String>, [usize; 2]) {
        let mut words: Vec<*mut c_char> =
            list.iter().map(|text| text.as_ptr().cast_mut()).collect();
        words.resize(list.len() + 3, core::ptr::null_mut());
        // SAFETY: the list ends with a null, and two words lie behind it; the strings live until the test is over.
        unsafe {
            leave_environment(words.as_mut_ptr());
            let entries: Vec<String> = words
                .iter()
                .take_while(|text| !text.is_null())
                .map(|text| CStr::from_ptr(*text).to_str().unwrap().to_owned())
                .collect();
            let behind = entries.len() + 1;
            (entries, [words[behind].addr(), words[behind + 1].addr()])
        }
    }

    #[test]
    fn what_is_for_the_loader_becomes_an_entry_of_the_auxiliary_vector() {
        let ours = c"LD_PRELOAD=/a/libstillpoint_upper_openmpi.so:/b/libx.so";
        let (entries, behind) = left(&[c"A=1", c"LD_PRELOAD=/b/libx.so", FOR_LOADER, ours]);
        assert_eq!(entries, ["A=1", "LD_PRELOAD=/b/libx.so"]);
        assert_eq!(behind, [AT_IGNORE, 0]);
        assert_eq!(left(&[FOR_LOADER, ours]), (vec![], [AT_IGNORE, 0]));
        let two = left(&[c"A=1", FOR_LOADER, c"GLIBC_TUNABLES=", ours, FOR_LOADER]);
        assert_eq!(two, (vec!["A=1".to_owned()], [AT_IGNORE, 0]));
    }

    #[test]
    fn an_environment_without_the_mark_stays() {
        assert_eq!(left(&[c"A=1", c"B=2"]).0, ["A=1", "B=2"]);
        assert_eq!(left(&[FOR_LOADER]).0.len(), 1);
        assert_eq!(left(&[]).0.len(), 0);
        // SAFETY: null stands for no list, which the function allows.
        unsafe { leave_environment(core::ptr::null_mut()) };
    }

    #[test]
    fn without_a_gate_nothing_happens() {
        assert!(!gate_is_there());
        assert_eq!(HOOKS.clock_cells, 0);
    }
}
