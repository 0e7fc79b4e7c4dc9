//! `MPI_Test` and `MPI_Testany` of one light receive that is not over, as programs poll.
//!
//! They are written out because the compiler keeps what is needed when the receive is over, or has failed, in registers, which have to be saved for every
//! call. Here it lies on the stack, and nobody takes it from there while nothing has come. Whatever else is asked goes another way, from its beginning.
//!
//! Rules: as in `direct`. The request is looked at inside the stay.

use core::ffi::c_int;

use crate::ground::abi::{PlaceOf, RequestHandle, Status};

/// Writes them out, in the one place that has what they end in. `$otherwise` is called as the stub was, from the application. `$over`, with the handle's place, and
/// `$failed`, with the stub's arguments and the real MPI's code behind them, are called inside; `$at_checkpoint` where one is pending.
macro_rules! asked {
    ($(
        $function:literal asks $slot:expr, otherwise $otherwise:path, failed $failed:path;
    )* over: $over:path, at_checkpoint: $at_checkpoint:path, form: $form:expr) => {$(
        core::arch::global_asm!(
            ".pushsection .text.stillpoint_asked, \"ax\", @progbits",
            ".balign 64",
            concat!(".globl ", $function),
            concat!(".hidden ", $function),
            concat!(".type ", $function, ", @function"),
            concat!($function, ":"),
            ".cfi_startproc",
            "mov eax, gs:[0x18]",
            "or eax, gs:[0x1c]",
            "jne {otherwise}",
            ".if {one}",
            "cmp edi, 1",
            "jne {otherwise}",
            ".endif",
            "mov dword ptr gs:[0x18], {inside}",
            ".if {one}", "mov rax, [rsi]", ".else", "mov rax, [rdi]", ".endif",
            "cmp rax, 4096",
            "jb 2f",
            "cmp dword ptr [rax + {form_at}], {form}",
            "jne 2f",
            // The flag is the last but one; the stack is even with an odd number of these.
            ".if {one}",
            "push rax", "push rsi", "push rdx", "push rcx", "push r8",
            "mov rsi, rax",
            ".else",
            "push rdi", "push rsi", "push rdx",
            "mov rdi, rax",
            ".endif",
            ".cfi_adjust_cfa_offset {frame}",
            "movabs rax, qword ptr [{dispatch}]",
            "call qword ptr [rax + {slot}]",
            "mov rcx, [rsp + 8]",
            "test eax, eax",
            "jne 3f",
            "cmp dword ptr [rcx], 0",
            "jne 4f",
            "add rsp, {frame}",
            ".cfi_adjust_cfa_offset -{frame}",
            "mov dword ptr gs:[0x18], 0",
            "movabs rcx, {pending}",
            "cmp dword ptr [rcx], 0",
            "jne {at_checkpoint}",
            "ret",
            "2:",
            "mov dword ptr gs:[0x18], 0",
            "jmp {otherwise}",
            "3:",
            ".cfi_adjust_cfa_offset {frame}",
            ".cfi_remember_state",
            ".if {one}",
            "mov r9d, eax", "mov edi, 1",
            "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rax",
            ".else",
            "mov ecx, eax",
            "pop rdx", "pop rsi", "pop rdi",
            ".endif",
            ".cfi_adjust_cfa_offset -{frame}",
            "jmp {failed}",
            "4:",
            ".cfi_restore_state",
            ".if {one}", "mov rdi, [rsp + 24]", ".else", "mov rdi, [rsp + 16]", ".endif",
            "add rsp, {frame}",
            ".cfi_adjust_cfa_offset -{frame}",
            "jmp {over}",
            ".cfi_endproc",
            concat!(".size ", $function, ", . - ", $function),
            ".popsection",
            one = const ($slot.1 as u32),
            frame = const if $slot.1 { 40 } else { 24 },
            slot = const $slot.0,
            inside = const stillpoint_wrappers::gate::Inside::Stub as u32,
            form_at = const core::mem::offset_of!($crate::ground::object::Object, clock),
            form = const $form,
            dispatch = const stillpoint_wrappers::gate::GATE_ADDRESS
                        + core::mem::offset_of!(stillpoint_wrappers::gate::GatePage, dispatch),
            pending = const stillpoint_wrappers::gate::GATE_ADDRESS
                        + core::mem::offset_of!(stillpoint_wrappers::gate::GatePage, pending),
            otherwise = sym $otherwise,
            failed = sym $failed,
            over = sym $over,
            at_checkpoint = sym $at_checkpoint,
        );
    )*};
}
pub(crate) use asked;

unsafe extern "C" {
    fn stillpoint_test(
        place: PlaceOf<RequestHandle>,
        flag: *mut c_int,
        status: *mut Status,
    ) -> c_int;
    fn stillpoint_testany(
        count: c_int,
        places: PlaceOf<RequestHandle>,
        index: *mut c_int,
        flag: *mut c_int,
        status: *mut Status,
    ) -> c_int;
}

/// `MPI_Test`, all of it.
///
/// # Safety
/// As the MPI function.
#[inline(always)]
pub unsafe fn test(place: PlaceOf<RequestHandle>, flag: *mut c_int, status: *mut Status) -> c_int {
    // SAFETY: the caller's.
    unsafe { stillpoint_test(place, flag, status) }
}

/// `MPI_Testany`, all of it.
///
/// # Safety
/// As the MPI function.
#[inline(always)]
pub unsafe fn testany(
    count: c_int,
    places: PlaceOf<RequestHandle>,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut Status,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { stillpoint_testany(count, places, index, flag, status) }
}
