//! `MPI_Recv` by the real MPI's own, so that a restart can leave it: the stub's arguments and the registers that it must
//! keep lie on the stack. From there the stub can be carried on although nothing below is left.
//!
//! It is written out because no other way is cheap enough: the arguments stay in their registers, and nothing has to be
//! saved twice.
//!
//! Rules: on the driver thread only; as in `direct`, at most one such call at a time.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use crate::ground::abi::Status;
use crate::ground::object::{Comm, Datatype};

/// The end of the stack of the receive under way, or 0 if there is none.
pub static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);
/// The code that a failed receive returned.
pub static CODE: AtomicI32 = AtomicI32::new(0);

/// Writes the receive out, in the one place that names its ends: `failed` after an error, `anew` after a restart, both called as the stub was, and
/// `at_checkpoint` if a checkpoint is pending. While `drained` is not 0, the receive goes from its beginning to `otherwise`, called as the stub was: that many
/// messages wait which the real MPI no longer has. They are looked at inside the stay, since a checkpoint may drain some at any moment before.
macro_rules! resumable_receive {
    (failed: $failed:path, anew: $anew:path, at_checkpoint: $at_checkpoint:path, drained: $drained:path, otherwise: $otherwise:path) => {
        core::arch::global_asm!(
            ".pushsection .text.stillpoint_receive, \"ax\", @progbits",
            ".balign 64",
            ".globl stillpoint_receive",
            ".hidden stillpoint_receive",
            ".type stillpoint_receive, @function",
            "stillpoint_receive:",
            ".cfi_startproc",
            concat!("mov dword ptr ", stillpoint_wrappers::record!(inside), ", {inside}"),
            "cmp qword ptr [rip + {drained}], 0",
            "jne 4f",
            "push rbp",
            "push rbx",
            "push r12",
            "push r13",
            "push r14",
            "push r15",
            "push rdi",
            "push rsi",
            "push rdx",
            "push rcx",
            "push r8",
            "push r9",
            ".cfi_adjust_cfa_offset 96",
            "mov [rip + {under_way}], rsp",
            // The status, the seventh argument.
            "push qword ptr [rsp + 104]",
            ".cfi_adjust_cfa_offset 8",
            "mov rdx, [rdx + {lower}]",
            "mov r9, [r9 + {lower}]",
            concat!("call ", stillpoint_wrappers::record!(receive)),
            "mov qword ptr [rip + {under_way}], 0",
            concat!("inc qword ptr ", stillpoint_wrappers::record!(received)),
            // No thread is stopped in this library's code.
            concat!("mov dword ptr ", stillpoint_wrappers::record!(inside), ", 0"),
            "movabs rcx, {pending}",
            "mov ecx, dword ptr [rcx]",
            "or ecx, eax",
            "jne 2f",
            "add rsp, 104",
            ".cfi_remember_state",
            ".cfi_adjust_cfa_offset -104",
            "ret",
            "5:",
            ".cfi_restore_state",
            ".cfi_remember_state",
            "add rsp, 104",
            ".cfi_adjust_cfa_offset -104",
            "jmp {at_checkpoint}",
            "4:",
            concat!("mov dword ptr ", stillpoint_wrappers::record!(inside), ", 0"),
            "jmp {otherwise}",
            "2:",
            ".cfi_restore_state",
            "test eax, eax",
            "je 5b",
            concat!("mov dword ptr ", stillpoint_wrappers::record!(inside), ", {inside}"),
            concat!("dec qword ptr ", stillpoint_wrappers::record!(received)),
            "mov [rip + {code}], eax",
            "add rsp, 8",
            ".cfi_adjust_cfa_offset -8",
            "lea rax, [rip + {failed}]",
            // From here the stub is as it was when it was called, and goes on at RAX.
            "3:",
            "pop r9",
            "pop r8",
            "pop rcx",
            "pop rdx",
            "pop rsi",
            "pop rdi",
            "pop r15",
            "pop r14",
            "pop r13",
            "pop r12",
            "pop rbx",
            "pop rbp",
            ".cfi_adjust_cfa_offset -96",
            "jmp rax",
            ".globl stillpoint_leave_receive",
            ".hidden stillpoint_leave_receive",
            "stillpoint_leave_receive:",
            "mov rsp, rdi",
            "lea rax, [rip + {anew}]",
            "jmp 3b",
            ".cfi_endproc",
            ".size stillpoint_receive, . - stillpoint_receive",
            ".popsection",
            inside = const stillpoint_wrappers::gate::Inside::Stub as u32,
            under_way = sym $crate::ground::arch::UNDER_WAY,
            lower = const core::mem::offset_of!($crate::ground::object::Object, lower),
            pending = const stillpoint_wrappers::gate::GATE_ADDRESS
                        + core::mem::offset_of!(stillpoint_wrappers::gate::GatePage, pending),
            code = sym $crate::ground::arch::CODE,
            failed = sym $failed,
            anew = sym $anew,
            at_checkpoint = sym $at_checkpoint,
            drained = sym $drained,
            otherwise = sym $otherwise,
        );
    };
}
pub(crate) use resumable_receive;

unsafe extern "C" {
    pub fn stillpoint_receive(
        buf: *mut c_void,
        count: c_int,
        datatype: Datatype,
        source: c_int,
        tag: c_int,
        comm: Comm,
        status: *mut Status,
    ) -> c_int;
    fn stillpoint_leave_receive(stack: usize) -> !;
}

/// Whether `record.inside` is 0 and `record.receive` is not.
///
/// # Safety
/// As [`record`](super::record).
#[inline(always)]
pub unsafe fn outside_and_receives() -> bool {
    // SAFETY: GS leads to this thread's record, by the caller's promise; `inside` and `receive` lie at 0x18 and 0xa0 and are only read.
    unsafe {
        core::arch::asm!(
            concat!("cmp dword ptr ", stillpoint_wrappers::record!(inside), ", 0"),
            "jne {0}",
            concat!("cmp qword ptr ", stillpoint_wrappers::record!(receive), ", 0"),
            "je {0}",
            label { return false },
            options(nostack, readonly)
        );
    }
    true
}

/// `MPI_Recv`, all of it.
///
/// # Safety
/// Where the thread [receives](outside_and_receives); datatype and communicator must lead to objects.
#[inline(always)]
pub unsafe fn receive(
    buf: *mut c_void,
    count: c_int,
    datatype: Datatype,
    source: c_int,
    tag: c_int,
    comm: Comm,
    status: *mut Status,
) -> c_int {
    // SAFETY: the thread receives in this way, and both handles lead to objects, by the caller's promise; the buffer and the status are as for `MPI_Recv`.
    unsafe { stillpoint_receive(buf, count, datatype, source, tag, comm, status) }
}

/// The code of the receive that has just failed.
pub fn code_of_receive() -> c_int {
    CODE.load(Ordering::Relaxed)
}

/// Takes the receive under way, if there is one, so that no other code finds it.
pub fn take_receive() -> Option<usize> {
    match UNDER_WAY.swap(0, Ordering::Relaxed) {
        0 => None,
        stack => Some(stack),
    }
}

/// The receive goes on.
pub fn give_receive_back(stack: usize) {
    UNDER_WAY.store(stack, Ordering::Relaxed);
}

/// Carries the stub on in `receive_begins_anew`, as if that had been called in its stead.
///
/// # Safety
/// On the thread of the receive that was taken; nothing between here and there may need its frame again.
pub unsafe fn leave_receive(stack: usize) -> ! {
    // SAFETY: the stack is that of the receive that was taken, on this very thread, and nothing below it is needed again, by the caller's promise.
    unsafe { stillpoint_leave_receive(stack) }
}
