//! x86-64: FS is the thread pointer of a libc, GS leads to our own record of the thread.
//!
//! Rules of this place: no libc, no `errno`, no memory except that which is named. Every function here may
//! run with either half's FS in place, except [`upper_thread_pointer`].

use core::arch::asm;
use core::mem::offset_of;

use stillpoint_wrappers::gate::{GATE_ADDRESS, GatePage, Inside, Reach, SHUT, ThreadRecord};
use stillpoint_wrappers::record;

use crate::ground::object::Object;

/// The body of a naked function: goes on in another, as if that one had been called.
macro_rules! go_to {
    ($function:path) => {
        core::arch::naked_asm!("jmp {function}", function = sym $function)
    };
}
pub(crate) use go_to;

mod asked;
mod behalf;
mod collective;
mod kernel;
mod numbers;
mod resumable;
mod short;
#[cfg(application = "mpich")]
mod there;
mod waits;

pub(crate) use asked::{asked, waited};
pub use behalf::{is_on_behalf, on_behalf};
pub use collective::{
    KEPT_BESIDE, buffers_of, frame_of, home_of, kept_of, name_of, pad_of, return_to, stacked_of,
};
pub(crate) use collective::{collective, steps};
pub use kernel::{
    address_space, futex_wait, is_mapped, leave_out, map, map_again, set_fs, unmap,
    working_directory, yield_processor,
};
pub(crate) use numbers::object_of;
pub(crate) use resumable::resumable_receive;
pub use resumable::{
    CODE, UNDER_WAY, code_of_receive, give_receive_back, leave_receive, outside_and_receives,
    receive, stillpoint_receive, take_receive,
};
pub(crate) use short::{fails, probed, receive_begun, send_begun, sent};
#[cfg(not(application = "mpich"))]
pub(crate) use short::{matched, received};
#[cfg(application = "mpich")]
pub(crate) use there::received_if_there;
pub use waits::{
    WAITS, begin_wait, end_wait, give_wait_back, is_called_back, is_shut, take_wait,
    uncount_received, waits,
};

const _: () = {
    // The assembly below spells these out.
    assert!(Reach::Direct as u32 == 0 && Inside::No as u32 == 0);
    assert!((Reach::Far as u32) < SHUT && SHUT == 1 << 8);
};

/// The calling thread's record.
///
/// # Safety
/// The gate must be there: only then does GS lead to a record.
#[inline(always)]
pub unsafe fn record() -> *mut ThreadRecord {
    let this;
    // SAFETY: the caller says that GS leads to a record, whose first word is its own address.
    unsafe {
        asm!(concat!("mov {}, ", record!(this)), out(reg) this, options(nostack, preserves_flags, readonly));
    }
    this
}

/// `record.inside`.
///
/// # Safety
/// As [`record`].
#[inline(always)]
pub unsafe fn inside() -> u32 {
    let value;
    // SAFETY: the thread has a record, as the caller promises, so GS leads to it; `inside` lies at 0x18, and the record stays while the thread lives.
    unsafe {
        asm!(concat!("mov {:e}, ", record!(inside)), out(reg) value, options(nostack, preserves_flags, readonly));
    }
    value
}

/// `record.inside = value`. A compiler barrier too: nothing of a stub moves out of its stay.
///
/// # Safety
/// As [`record`].
#[inline(always)]
pub unsafe fn set_inside(value: u32) {
    // SAFETY: GS leads to this thread's record, by the caller's promise; `inside` lies at 0x18, and the thread itself may write it.
    unsafe {
        asm!(concat!("mov ", record!(inside), ", {:e}"), in(reg) value, options(nostack, preserves_flags));
    }
}

/// `record.reach`, without [`SHUT`](stillpoint_wrappers::gate::SHUT).
///
/// # Safety
/// As [`record`].
#[inline(always)]
pub unsafe fn reach() -> u32 {
    let value: u32;
    // SAFETY: GS leads to this thread's record, by the caller's promise; the low byte of `reach` lies at 0x1c.
    unsafe {
        asm!(concat!("movzx {:e}, byte ptr ", record!(reach)), out(reg) value, options(nostack, preserves_flags, readonly));
    }
    value
}

/// `record.reach = value`; whether it is shut stays.
///
/// # Safety
/// As [`record`].
pub unsafe fn set_reach(value: Reach) {
    // SAFETY: GS leads to this thread's record, by the caller's promise; only the low byte of `reach` is written, so `SHUT` beside it stays.
    unsafe {
        asm!(concat!("mov ", record!(reach), ", {}"), in(reg_byte) value as u8, options(nostack, preserves_flags));
    }
}

/// Whether both `record.inside` and `record.reach` are 0: the thread is in the application, and the shortest way exists and is not shut. Each is read as it is
/// written, in 32 bits. A load of both at once could not be answered from the store that the call before has just made, and would wait until that is in the
/// cache.
///
/// # Safety
/// As [`record`].
#[inline(always)]
pub unsafe fn outside_and_direct() -> bool {
    // SAFETY: GS leads to this thread's record, by the caller's promise; `inside` and `reach` lie at 0x18 and 0x1c and are only read.
    unsafe {
        asm!(
            concat!("mov {both:e}, ", record!(inside)),
            concat!("or {both:e}, ", record!(reach)),
            "jne {no}",
            both = out(reg) _,
            no = label { return false },
            options(nostack, readonly)
        );
    }
    true
}

/// Whether a code of MPI's is 0, in a way that the compiler does not see: the existing 0 is returned, and not made again.
#[inline(always)]
pub fn is_success(code: i32) -> bool {
    // SAFETY: it compares a register with 0, and touches no memory.
    unsafe {
        asm!(
            "test {0:e}, {0:e}",
            "jne {1}",
            in(reg) code,
            label { return false },
            options(nomem, nostack)
        );
    }
    true
}

/// `record.inside = VALUE`, as [`set_inside`].
///
/// # Safety
/// As [`record`].
#[inline(always)]
pub unsafe fn be_inside<const VALUE: u32>() {
    // SAFETY: GS leads to this thread's record, by the caller's promise; `inside` lies at 0x18, and a constant is written there.
    unsafe {
        asm!(concat!("mov dword ptr ", record!(inside), ", {}"), const VALUE, options(nostack, preserves_flags));
    }
}

/// Whether this is the driver thread.
///
/// # Safety
/// As [`record`].
#[inline(always)]
pub unsafe fn is_driver() -> bool {
    let value: u32;
    // SAFETY: GS leads to this thread's record, by the caller's promise; whether it is the driver lies at 0x98.
    unsafe {
        asm!(concat!("mov {:e}, ", record!(driver)), out(reg) value, options(nostack, preserves_flags, readonly));
    }
    value != 0
}

/// Counts one more message sent by this thread.
///
/// # Safety
/// As [`record`].
#[inline(always)]
pub unsafe fn count_sent() {
    // SAFETY: GS leads to this thread's record, by the caller's promise; the sent messages are counted at 0x20, by this thread only.
    unsafe { asm!(concat!("inc qword ptr ", record!(sent)), options(nostack)) }
}

/// Counts one message less: the send that was counted has failed or was cancelled.
///
/// # Safety
/// As [`record`].
#[inline(always)]
pub unsafe fn uncount_sent() {
    // SAFETY: GS leads to this thread's record, by the caller's promise; 0x20 holds its own count of sent messages, which no other thread writes.
    unsafe { asm!(concat!("dec qword ptr ", record!(sent)), options(nostack)) }
}

/// Counts one more message received by this thread.
///
/// # Safety
/// As [`record`].
#[inline(always)]
pub unsafe fn count_received() {
    // SAFETY: GS leads to this thread's record, by the caller's promise; the received messages are counted at 0x28, by this thread only.
    unsafe {
        asm!(
            concat!("inc qword ptr ", record!(received)),
            options(nostack)
        )
    }
}

/// Counts that many more messages received by this thread.
///
/// # Safety
/// As [`record`].
#[inline(always)]
pub unsafe fn count_received_many(messages: u64) {
    // SAFETY: GS leads to this thread's record, by the caller's promise; 0x28 holds its own count of received messages, which no other thread writes.
    unsafe {
        asm!(concat!("add qword ptr ", record!(received), ", {}"), in(reg) messages, options(nostack))
    }
}

/// The lower half's thread area that this thread borrows; 0 while it has none.
///
/// # Safety
/// As [`record`].
#[inline(always)]
pub unsafe fn lower_thread_pointer() -> u64 {
    let value;
    // SAFETY: GS leads to this thread's record, by the caller's promise; the lower thread pointer lies at 0x08.
    unsafe {
        asm!(concat!("mov {}, ", record!(fs_lower)), out(reg) value, options(nostack, preserves_flags, readonly));
    }
    value
}

/// The upper half's thread pointer, read from the thread control block that it points to (its first
/// word is its own address, by the x86-64 TLS ABI) and noted in the record, for code that
/// interrupts the lower half.
///
/// # Safety
/// As [`record`]; the upper FS must be in place.
#[inline(always)]
pub unsafe fn upper_thread_pointer() -> u64 {
    let value;
    // SAFETY: GS leads to this thread's record and the upper FS is in place, by the caller's promise; the TLS ABI puts the thread pointer itself at `fs:0`.
    unsafe {
        asm!(
            "mov {0}, fs:[0]",
            concat!("mov ", record!(fs_upper), ", {0}"),
            out(reg) value,
            options(nostack, preserves_flags)
        );
    }
    value
}

/// The upper half's thread pointer as it was noted last.
///
/// # Safety
/// As [`record`].
#[inline(always)]
pub unsafe fn noted_upper_thread_pointer() -> u64 {
    let value;
    // SAFETY: GS leads to this thread's record, by the caller's promise; the upper thread pointer was noted at 0x10.
    unsafe {
        asm!(concat!("mov {}, ", record!(fs_upper)), out(reg) value, options(nostack, preserves_flags, readonly));
    }
    value
}

/// The thread pointer in place, of either half: the first word of its thread control block.
#[inline(always)]
pub fn thread_pointer() -> u64 {
    let value;
    // SAFETY: the TLS ABI puts the thread pointer itself at `fs:0`, for either half.
    unsafe {
        asm!("mov {}, fs:[0]", out(reg) value, options(nostack, preserves_flags, readonly));
    }
    value
}

/// Switches the thread pointer by the instruction for it.
///
/// # Safety
/// `value` must be a thread pointer that belongs to the code that runs next; the kernel must allow
/// `wrfsbase` (`GatePage::fsgsbase`).
#[inline(always)]
pub unsafe fn write_fs(value: u64) {
    // SAFETY: the caller promises a thread pointer for the code that runs next, and a kernel that allows the instruction. A compiler barrier, so that nothing
    // moves across the switch.
    unsafe { asm!("wrfsbase {}", in(reg) value, options(nostack, preserves_flags)) }
}

/// Whether the page's word `pending` is set. No register holds its address across a call. A compiler barrier.
#[inline(always)]
pub fn gate_pending() -> bool {
    // SAFETY: stubs run only where a lower half started the application, which maps the page first.
    unsafe {
        asm!(
            "movabs {page}, {address}",
            "cmp dword ptr [{page}], 0",
            "jne {set}",
            page = out(reg) _,
            address = const GATE_ADDRESS + offset_of!(GatePage, pending),
            set = label { return true },
            options(nostack)
        );
    }
    false
}

/// Whether a handle is the address of an object: not null, and no small number.
#[inline(always)]
pub fn is_address(handle: *const Object) -> bool {
    // SAFETY: it compares an address with a number; nothing is read there.
    unsafe {
        asm!(
            "cmp {}, 4096",
            "jb {}",
            in(reg) handle,
            label { return false },
            options(nostack, readonly)
        );
    }
    true
}
