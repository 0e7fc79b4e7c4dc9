//! The functions and data of this half that the lower half may call and read ([`UpperHooks`]): filled in by the constructor.

use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::ops::Deref;
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

use stillpoint_wrappers::contract;
use stillpoint_wrappers::gate::{ClockRoom, UpperHooks};

/// The hooks, in memory that never moves.
pub struct Hooks(UnsafeCell<UpperHooks>);

// SAFETY: written by the constructor before any other thread is there; from then on only its atomics
// change.
unsafe impl Sync for Hooks {}

impl Deref for Hooks {
    type Target = UpperHooks;

    #[inline(always)]
    fn deref(&self) -> &UpperHooks {
        // SAFETY: the constructor has written them before any other thread was there; only their atomics change since.
        unsafe { &*self.0.get() }
    }
}

impl Hooks {
    /// Their address, for the constructor to fill them in.
    pub fn place(&self) -> *mut UpperHooks {
        self.0.get()
    }
}

pub static HOOKS: Hooks = Hooks(UnsafeCell::new(UpperHooks {
    version: contract::VERSION,
    reserved: size_of::<UpperHooks>() as u32,
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
    again: 0,
    stands: None,
    stand: None,
    clock_names: 0,
    look_up: None,
    call: AtomicU64::new(0),
    closed: [0; 2],
    clock_stride: size_of::<ClockRoom>() as u32,
    long_way: AtomicU32::new(0),
    remembered: None,
}));

/// Notes the operation that the calling thread is in, for a later reader.
#[inline(always)]
pub fn note_call(name: &'static CStr) {
    HOOKS.call.store(name.as_ptr() as u64, Ordering::Relaxed);
}
