//! A blocking collective operation by the real MPI's own function, so that it can be begun again: the stub's arguments lie on
//! the stack while the real function runs.
//!
//! ```text
//! sp at the call ->  arguments that go on the stack, as the real function gets them
//!                    the registers' arguments, as the application gave them (the first one lowest)
//!                    a copy of the input, where that is in place and small
//!                    nothing, where that makes the stack even
//!                    return address, the application's arguments that came on the stack
//! ```
//!
//! It is written out because no other way is cheap enough: each argument is stored once, and none is loaded again unless it is needed.
//! The real function is found in the table at `GatePage::direct`. While a checkpoint is pending, that table holds functions which take the increment back and
//! return [`AGAIN`]. The real function seems to return the same in a restarted process. Then the stub tells what binds
//! nevertheless, and the operation goes the long way with its original arguments.
//!
//! An operation that members may return from before others have come is noted in the clock's log before it is counted: its kind, and the facts that a late
//! member would need to know. Then `count` is not on the stack (nor is `root`, if that is in a register): the log has it.
//!
//! A function that is called with `MPI_IN_PLACE`, and whose count and datatype tell its input, has a second stub for such calls: it copies the input, and puts
//! it back before the operation goes the long way (`operations::clock::kept`).
//!
//! Rules: as in `direct`. The stubs lie in a section of their own, `stillpoint_collective`. No thread is stopped there, as in all of this library
//! (`UpperHooks::closed`).

use core::ffi::{CStr, c_void};

use stillpoint_wrappers::gate::Caller;

pub(crate) mod steps;

/// The entry of `stillpoint_collective_calls` for each call: how far behind it the instruction is that it returns to, how many bytes lie below the
/// registers' arguments, and which of these are buffers that may be in place.
#[repr(C)]
struct Call {
    behind: i32,
    /// The distance from this field to the operation's name.
    name: i32,
    below: u16,
    buffers: u16,
}

unsafe extern "C" {
    #[link_name = "__start_stillpoint_collective_calls"]
    static FIRST: Call;
    #[link_name = "__stop_stillpoint_collective_calls"]
    static LAST: Call;
}

/// Bytes of input that a stub copies to its stack.
pub const KEPT_BESIDE: usize = 1024;

/// The call that a caller made, if a stub of this kind made it.
fn call_of(caller: &Caller) -> Option<&'static Call> {
    // SAFETY: the linker lays the calls out one behind the other, between these two.
    let calls = unsafe {
        let (first, last) = (&raw const FIRST, &raw const LAST);
        core::slice::from_raw_parts(first, last.offset_from_unsigned(first))
    };
    calls.iter().find(|call| {
        let here = (&raw const call.behind).addr();
        here.wrapping_add_signed(call.behind as isize) == caller.pc as usize
    })
}

/// The buffers of an operation under way, as the application gave them, that MPI may change although they are input; none if
/// a stub of this kind did not make the call.
///
/// # Safety
/// `caller` must be a caller whose call has not returned.
pub unsafe fn buffers_of(caller: &Caller) -> impl Iterator<Item = *const c_void> {
    let (below, buffers) = call_of(caller).map_or((0, 0), |call| (call.below, call.buffers));
    let arguments = (caller.sp as usize + below as usize) as *const *const c_void;
    (0..6)
        .filter(move |index| buffers & 1 << index != 0)
        // SAFETY: the stub has them there until its call returns.
        .map(move |index| unsafe { arguments.add(index).read() })
}

/// The operation's name.
pub fn name_of(caller: &Caller) -> Option<&'static CStr> {
    let call = call_of(caller)?;
    let name = (&raw const call.name).wrapping_byte_offset(call.name as isize);
    // SAFETY: a name that ends in 0 lies there.
    Some(unsafe { CStr::from_ptr(name.cast()) })
}

/// Goes back to a caller as if the function that the caller called had returned `code`.
///
/// # Safety
/// The call must not have returned, on this very thread's stack, and nothing between here and there may be needed any more. The upper half's FS
/// must be in place.
pub unsafe fn return_to(caller: &Caller, code: i32) -> ! {
    // SAFETY: the frame of `caller` is alive on this thread's stack, and nothing between is needed any more, by the caller's promise; `caller` holds its
    // registers.
    unsafe {
        core::arch::asm!(
            "mov rbx, [rdi + 16]",
            "mov rbp, [rdi + 24]",
            "mov r12, [rdi + 32]",
            "mov r13, [rdi + 40]",
            "mov r14, [rdi + 48]",
            "mov r15, [rdi + 56]",
            "mov rsp, [rdi + 8]",
            "jmp [rdi]",
            in("rdi") caller,
            in("eax") code,
            options(noreturn)
        )
    }
}

/// The body of the naked function that is the stub of a blocking collective operation.
///
/// `name` is MPI's; `long` is the function that goes every way. `failed(communicator, code, name)` is called after an error. `returned(communicator)` is called
/// if a checkpoint is pending when the operation is over, or before it goes the long way. `slot` is the function's place in the table. Of the `arguments`,
/// whose last one is the communicator, bits say which are handles (the communicator left out; if it `looks`, they may lead to no objects) and which are buffers
/// that may be in place. `noted` is the operation's `absent::Kind`. If it is not `Unknown`, the second argument is a count, the third one a datatype, and
/// `root` the last but one.
///
/// If `has_copy`, `copy` is the stub for calls in place (of the first argument). If `keeps` is not `Nothing`, this is that stub, and `copy` the function that
/// puts the input back.
macro_rules! collective {
    (name: $name:literal, long: $long:path, failed: $failed:path, returned: $returned:path, slot: $slot:expr,
     arguments: $arguments:literal, handles: $handles:literal, looks: $looks:literal, buffers: $buffers:literal, noted: $noted:expr,
     has_copy: $has_copy:literal, copy: $copy:path, keeps: $keeps:expr $(,)?) => {
        core::arch::naked_asm!(
            ".cfi_startproc",
            ".if {has_copy}", "cmp rdi, {in_place}", "je {copy}", ".endif",
            concat!("cmp qword ptr ", stillpoint_wrappers::record!(inside), ", 0"),
            "jne {long}",
            $crate::ground::arch::steps::look_at_handles!(),
            $crate::ground::arch::steps::counts!(),
            ".if {keeps}", $crate::ground::arch::steps::measure_input!(), ".endif",
            concat!("mov dword ptr ", stillpoint_wrappers::record!(inside), ", eax"),
            ".if {noted}", $crate::ground::arch::steps::note!(), ".endif",
            "inc qword ptr [rax + {seq}]",
            $crate::ground::arch::steps::store_arguments!(),
            $crate::ground::arch::steps::push_arguments!(),
            ".cfi_adjust_cfa_offset {frame}",
            ".if {keeps}", $crate::ground::arch::steps::copy_input!(), ".endif",
            $crate::ground::arch::steps::call_directly!(),
            // No thread is stopped in this section: so none is stopped before it is clear that nothing has to be told.
            concat!("mov dword ptr ", stillpoint_wrappers::record!(inside), ", 0"),
            "movabs rcx, {pending}",
            "mov ecx, dword ptr [rcx]",
            "or ecx, eax",
            "jne 2f",
            "add rsp, {frame}",
            ".cfi_adjust_cfa_offset -{frame}",
            "ret",
            "2:",
            ".cfi_adjust_cfa_offset {frame}",
            concat!("mov dword ptr ", stillpoint_wrappers::record!(inside), ", {stub}"),
            "mov rdi, [rsp + {home}]",
            "cmp eax, {again}",
            "jne 3f",
            ".cfi_remember_state",
            $crate::ground::arch::steps::take_increment_back!(),
            ".if {keeps}", $crate::ground::arch::steps::put_input_back!(), ".endif",
            "add rsp, {below}",
            $crate::ground::arch::steps::load_arguments!(),
            ".cfi_adjust_cfa_offset -{frame}",
            "jmp {long}",
            "3:",
            ".cfi_restore_state",
            "add rsp, {frame}",
            ".cfi_adjust_cfa_offset -{frame}",
            "test eax, eax",
            "je {returned}",
            "mov esi, eax",
            "lea rdx, [rip + 9f]",
            "jmp {failed}",
            ".cfi_endproc",
            ".balign 32",
            ".pushsection .rodata.stillpoint_names, \"a\", @progbits",
            concat!("9: .asciz \"", $name, "\""),
            ".popsection",
            ".pushsection stillpoint_collective_calls, \"aR\", @progbits",
            ".balign 4",
            ".long 8b - .",
            ".long 9b - .",
            ".short {below}, {buffers}",
            ".popsection",
            long = sym $long,
            failed = sym $failed,
            returned = sym $returned,
            arguments = const $arguments,
            handles = const $handles,
            looks = const $looks as u32,
            buffers = const $buffers,
            below = const 8 * if $arguments > 6 { $arguments - 6 } else { 0 },
            noted = const $noted as u32,
            has_copy = const $has_copy as u32,
            copy = sym $copy,
            in_place = const $crate::ground::abi::IN_PLACE.cast_signed(),
            keeps = const $keeps as u32,
            each = const $crate::ground::keeps::Keeps::EachMember as u32,
            own = const $crate::ground::keeps::Keeps::OwnBlock as u32,
            beside = const $crate::ground::arch::KEPT_BESIDE,
            kept = const $crate::ground::arch::kept_of($arguments),
            between = const core::mem::offset_of!($crate::ground::object::Object, between),
            members = const core::mem::offset_of!($crate::ground::object::Object, size),
            rank = const core::mem::offset_of!($crate::ground::object::Object, rank),
            root_kept = const ($noted as u32 == 0 || $arguments > 5) as u32,
            pad = const $crate::ground::arch::pad_of($arguments, $noted as u32),
            stacked = const $crate::ground::arch::stacked_of($arguments, $noted as u32),
            frame = const $crate::ground::arch::frame_of($arguments, $noted as u32, $keeps as u32),
            home = const $crate::ground::arch::home_of($arguments, $noted as u32, $keeps as u32),
            again = const stillpoint_wrappers::gate::AGAIN,
            stub = const stillpoint_wrappers::gate::Inside::Stub as u32,
            slot = const $slot,
            counts = const core::mem::offset_of!($crate::ground::object::Object, counts),
            lower = const core::mem::offset_of!($crate::ground::object::Object, lower),
            seq = const core::mem::offset_of!(stillpoint_wrappers::gate::ClockRoom, cell.count),
            numbers = const core::mem::offset_of!(stillpoint_wrappers::gate::ClockRoom, log.numbers)
                      + 4 * stillpoint_clock::absent::REMEMBERED * ($noted as usize).saturating_sub(1),
            log_counts = const core::mem::offset_of!(stillpoint_wrappers::gate::ClockRoom, log.counts),
            log_roots = const core::mem::offset_of!(stillpoint_wrappers::gate::ClockRoom, log.roots),
            log_types = const core::mem::offset_of!(stillpoint_wrappers::gate::ClockRoom, log.types),
            direct = const stillpoint_wrappers::gate::GATE_ADDRESS
                        + core::mem::offset_of!(stillpoint_wrappers::gate::GatePage, direct),
            pending = const stillpoint_wrappers::gate::GATE_ADDRESS
                        + core::mem::offset_of!(stillpoint_wrappers::gate::GatePage, pending),
        )
    };
}
pub(crate) use collective;

/// The number of registers' arguments that are on the stack: the log has none of them or some.
const fn pushed_of(arguments: usize, noted: u32) -> usize {
    let in_registers = if arguments > 6 { 6 } else { arguments };
    match (noted, arguments) {
        (0, _) => in_registers,
        (_, 5) => in_registers - 2,
        _ => in_registers - 1,
    }
}

/// The arguments on the caller's stack, which the real function gets on its own.
const fn below_of(arguments: usize) -> usize {
    arguments.saturating_sub(6)
}

/// Whether the stack has to be made even: 0 or 1.
pub const fn pad_of(arguments: usize, noted: u32) -> usize {
    (pushed_of(arguments, noted) + below_of(arguments) + 1) % 2
}

/// Bytes between the return address and the stack pointer at the call.
pub const fn frame_of(arguments: usize, noted: u32, keeps: u32) -> usize {
    let copy = if keeps == 0 { 0 } else { KEPT_BESIDE };
    copy + 8 * (pushed_of(arguments, noted) + below_of(arguments) + pad_of(arguments, noted))
}

/// Bytes for a copy of the input, with the padding that makes the stack even.
pub const fn kept_of(arguments: usize) -> usize {
    KEPT_BESIDE + 8 * pad_of(arguments, 0)
}

/// The distance of the last but one of the arguments on the caller's stack, once the registers' and the last one are pushed. Each push moves the stack so that
/// the argument before has this distance.
pub const fn stacked_of(arguments: usize, noted: u32) -> usize {
    8 * (pushed_of(arguments, noted) + pad_of(arguments, noted) + below_of(arguments))
}

/// The communicator's distance from the stack pointer at the call.
pub const fn home_of(arguments: usize, noted: u32, keeps: u32) -> usize {
    match arguments {
        0..=6 => 8 * (pushed_of(arguments, noted) - 1),
        _ => frame_of(arguments, noted, keeps) + 8 * below_of(arguments),
    }
}

const _: () = {
    // The assembly above spells these out.
    assert!(core::mem::offset_of!(Caller, pc) == 0 && core::mem::offset_of!(Caller, sp) == 8);
    assert!(core::mem::offset_of!(Caller, kept) == 16);
};
