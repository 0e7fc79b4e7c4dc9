//! The library's start: before anything of the application runs, it says in the gate page what the lower
//! half may call, and takes itself out of the environment that children inherit.
//!
//! Where there is no gate - a program that inherited the library by accident - it does nothing.
//! No libc is used, nothing is allocated from the application's memory.

use core::cell::UnsafeCell;
use core::ffi::{c_char, c_int};
use core::ops::Deref;
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

use stillpoint_wrappers::gate::{self, GATE_ADDRESS, GATE_MAGIC, GATE_VERSION, UpperHooks};

use crate::{arch, collective, grequest, operator, p2p, park, refusal};

/// What the lower half may call, in memory that never moves.
pub struct Hooks(UnsafeCell<UpperHooks>);

// SAFETY: written by the constructor before any other thread is there; from then on only its atomics
// change.
unsafe impl Sync for Hooks {}

impl Deref for Hooks {
    type Target = UpperHooks;

    #[inline(always)]
    fn deref(&self) -> &UpperHooks {
        // SAFETY: see `Sync`.
        unsafe { &*self.0.get() }
    }
}

pub static HOOKS: Hooks = Hooks(UnsafeCell::new(UpperHooks {
    version: GATE_VERSION,
    reserved: 0,
    clock_cells: 0,
    clock_count: AtomicU32::new(0),
    refusal_bytes: AtomicU32::new(0),
    refusal: 0,
    park: None,
    rebuild: None,
    call_op: None,
    call_grequest: None,
    waiting: None,
    inventory: AtomicU64::new(0),
    inventory_bytes: AtomicU64::new(0),
    mpi_thread_level: AtomicI32::new(-1),
    reserved2: 0,
    hindrances: 0,
}));

/// Whether a lower half started this process.
pub fn gate_is_there() -> bool {
    if !arch::is_mapped(GATE_ADDRESS) {
        return false;
    }
    // SAFETY: just found mapped; whatever it is, its first bytes can be read.
    let page = unsafe { gate::page() };
    page.magic == GATE_MAGIC && page.version == GATE_VERSION
}

/// Run by the dynamic loader.
unsafe extern "C" fn construct(
    _arguments: c_int,
    _vector: *const *const c_char,
    environment: *mut *mut c_char,
) {
    if !gate_is_there() {
        return;
    }
    // SAFETY: the loader gives the environment; nobody else is there yet.
    unsafe {
        leave_environment(environment);
        let hooks = HOOKS.0.get();
        (*hooks).clock_cells = collective::map_cells() as u64;
        (*hooks).refusal = refusal::address();
        (*hooks).hindrances = crate::refuse::address();
        (*hooks).park = Some(park::driver);
        (*hooks).rebuild = Some(crate::rebuild::hook);
        (*hooks).call_op = Some(operator::call);
        (*hooks).call_grequest = Some(grequest::call);
        (*hooks).waiting = Some(p2p::waiting_hook);
        crate::abi::initialise_predefined(&gate::page().services);
        crate::conversion::initialise();
        crate::request::initialise();
        gate::page().hooks.store(hooks as u64, Ordering::Release);
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: unsafe extern "C" fn(c_int, *const *const c_char, *mut *mut c_char) = construct;

/// What a path in `LD_PRELOAD` must contain to be this library's.
const NAME: &[u8] = b"libstillpoint_upper_";

/// Takes this library out of `LD_PRELOAD`, in place; the variable too when nothing else is in it.
///
/// # Safety
/// `environment` must be a null-terminated list of writable strings, or null.
unsafe fn leave_environment(environment: *mut *mut c_char) {
    const VARIABLE: &[u8] = b"LD_PRELOAD=";
    if environment.is_null() {
        return;
    }
    let mut entry = environment;
    // SAFETY: within the list and its strings, up to their ends.
    unsafe {
        while !(*entry).is_null() {
            let text = core::ffi::CStr::from_ptr(*entry).to_bytes().len();
            let bytes = core::slice::from_raw_parts_mut((*entry).cast::<u8>(), text + 1);
            if !bytes.starts_with(VARIABLE) {
                entry = entry.add(1);
                continue;
            }
            let left = without_library(&mut bytes[VARIABLE.len()..text]);
            bytes[VARIABLE.len() + left] = 0;
            if left != 0 {
                return;
            }
            let mut here = entry;
            while !(*here).is_null() {
                *here = *here.add(1);
                here = here.add(1);
            }
        }
    }
}

/// Closes the gap that this library leaves in a list of paths; returns the new length.
fn without_library(list: &mut [u8]) -> usize {
    let (mut read, mut written) = (0, 0);
    while read < list.len() {
        let end = list[read..]
            .iter()
            .position(|byte| matches!(byte, b':' | b' '))
            .map_or(list.len(), |length| read + length);
        let path = &list[read..end];
        if !path.is_empty() && !path.windows(NAME.len()).any(|window| window == NAME) {
            if written != 0 {
                list[written] = b':';
                written += 1;
            }
            list.copy_within(read..end, written);
            written += end - read;
        }
        read = end + 1;
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(list: &str) -> String {
        let mut bytes = list.as_bytes().to_vec();
        let length = without_library(&mut bytes);
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }

    #[test]
    fn only_this_library_leaves_the_list() {
        assert_eq!(left("/a/libstillpoint_upper_openmpi.so"), "");
        assert_eq!(
            left("/a/libstillpoint_upper_openmpi.so:/b/libx.so"),
            "/b/libx.so"
        );
        assert_eq!(
            left("/b/libx.so:/a/libstillpoint_upper_openmpi.so"),
            "/b/libx.so"
        );
        assert_eq!(
            left("/b/x.so /a/libstillpoint_upper_mpich.so:/c/y.so"),
            "/b/x.so:/c/y.so"
        );
        assert_eq!(left("/b/x.so:/c/y.so"), "/b/x.so:/c/y.so");
        assert_eq!(left(""), "");
    }

    #[test]
    fn the_variable_goes_when_nothing_is_left_in_it() {
        let mut strings: Vec<Vec<u8>> = [
            &b"A=1\0"[..],
            b"LD_PRELOAD=/a/libstillpoint_upper_openmpi.so\0",
            b"B=2\0",
        ]
        .iter()
        .map(|s| s.to_vec())
        .collect();
        let mut list: Vec<*mut c_char> =
            strings.iter_mut().map(|s| s.as_mut_ptr().cast()).collect();
        list.push(core::ptr::null_mut());
        // SAFETY: a list of writable strings with its end.
        let found: Vec<_> = unsafe {
            leave_environment(list.as_mut_ptr());
            list.iter()
                .take_while(|s| !s.is_null())
                .map(|s| core::ffi::CStr::from_ptr(*s).to_str().unwrap())
                .collect()
        };
        assert_eq!(found, ["A=1", "B=2"]);
    }

    #[test]
    fn without_a_gate_nothing_happens() {
        assert!(!gate_is_there());
        assert_eq!(HOOKS.clock_cells, 0);
    }
}
