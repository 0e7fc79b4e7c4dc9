//! The springboard: code that is copied to the same address in every launch, so that a stack of
//! the application which leads into it can be carried on in another launch.
//!
//! * *Calls*: a trapped system call that may block, or wait for a signal, is not made by the trap's
//!   handler but here, after the handler has returned, with the application's own mask. The handler
//!   puts the way back into rcx and one more word into r11 (the two registers that `syscall` destroys
//!   anyway), and the address of one of these pieces into rip.
//! * *Trampoline*: every handler of the application is called from here.
//! * *Restorer*: ends every signal handler.
//! * *Park*: the calling thread sends itself the stop signal.
//! * *Clocks*: system calls in the vDSO's stead, for a kernel without one.
//!
//! The pieces keep below the 128-byte red zone of the code that made the call, and leave every register
//! as a system call would. While a call is being made, its number lies at `rsp + 24`: whoever finds it interrupted
//! can make it again ([`call_behind`]).

use core::arch::global_asm;

use stillpoint_wrappers::gate::ThreadRecord;

use crate::gate::layout::{
    DESCRIPTOR_LIMIT, DESCRIPTORS, SPRINGBOARD, SPRINGBOARD_BYTES, Slot, slot,
};

const _: () = {
    // Offsets that the assembly spells out.
    assert!(core::mem::offset_of!(ThreadRecord, real_tid) == 0x34);
    assert!(core::mem::offset_of!(ThreadRecord, private) == 0x40);
};

global_asm!(
    ".pushsection .text.stillpoint_springboard, \"ax\", @progbits",
    // Seen from every part of this program (code generation units), and from nowhere else.
    ".irp name, springboard_start, springboard_end, restorer, call_plain, call_noting, call_rdi_noting, call_rsi_noting, call_mask_rdi, call_mask_rsi_noting, call_mask_r10, call_mask_r8, call_mask_r9, call_rest_rsi, call_rest_r10, call_recvmsg, call_recvmmsg, call_futex_again, trampoline, park_self, clock_gettime, gettimeofday, time, getcpu",
    ".globl stillpoint_\\name",
    ".hidden stillpoint_\\name",
    ".endr",
    ".balign 64",
    "stillpoint_springboard_start:",
    // rt_sigreturn
    "stillpoint_restorer:",
    "mov eax, 15",
    "syscall",
    "ud2",
    // The call as it is.
    ".balign 16",
    "stillpoint_call_plain:",
    "lea rsp, [rsp - 160]",
    "mov [rsp], rcx",
    "mov [rsp + 24], rax",
    "syscall",
    "ret 152",
    // The call's result is a descriptor of the upper half.
    ".balign 16",
    "stillpoint_call_noting:",
    "lea rsp, [rsp - 160]",
    "mov [rsp], rcx",
    "mov [rsp + 24], rax",
    "syscall",
    "stillpoint_noting_from:",
    "cmp rax, {descriptor_limit}",
    "jae 2f",
    "movabs rcx, {descriptors}",
    "lock bts qword ptr [rcx], rax",
    "2:",
    "ret 152",
    // r11 takes the first argument's place.
    ".balign 16",
    "stillpoint_call_rdi_noting:",
    "lea rsp, [rsp - 160]",
    "mov [rsp], rcx",
    "mov [rsp + 24], rax",
    "mov [rsp + 8], rdi",
    "mov rdi, r11",
    "syscall",
    "mov rdi, [rsp + 8]",
    "cmp rax, {descriptor_limit}",
    "jae 2f",
    "movabs rcx, {descriptors}",
    "lock bts qword ptr [rcx], rax",
    "2:",
    "ret 152",
    // r11 takes the second argument's place.
    ".balign 16",
    "stillpoint_call_rsi_noting:",
    "lea rsp, [rsp - 160]",
    "mov [rsp], rcx",
    "mov [rsp + 24], rax",
    "mov [rsp + 8], rsi",
    "mov rsi, r11",
    "syscall",
    "mov rsi, [rsp + 8]",
    "cmp rax, {descriptor_limit}",
    "jae 2f",
    "movabs rcx, {descriptors}",
    "lock bts qword ptr [rcx], rax",
    "2:",
    "ret 152",
    // r11 is a signal mask for the first argument to point to.
    ".balign 16",
    "stillpoint_call_mask_rdi:",
    "lea rsp, [rsp - 160]",
    "mov [rsp], rcx",
    "mov [rsp + 24], rax",
    "mov [rsp + 8], r11",
    "mov [rsp + 16], rdi",
    "lea rdi, [rsp + 8]",
    "syscall",
    "mov rdi, [rsp + 16]",
    "ret 152",
    // ... for the second argument (signalfd: the result is a descriptor).
    ".balign 16",
    "stillpoint_call_mask_rsi_noting:",
    "lea rsp, [rsp - 160]",
    "mov [rsp], rcx",
    "mov [rsp + 24], rax",
    "mov [rsp + 8], r11",
    "mov [rsp + 16], rsi",
    "lea rsi, [rsp + 8]",
    "syscall",
    "mov rsi, [rsp + 16]",
    "cmp rax, {descriptor_limit}",
    "jae 2f",
    "movabs rcx, {descriptors}",
    "lock bts qword ptr [rcx], rax",
    "2:",
    "ret 152",
    // ... for the fourth argument (ppoll).
    ".balign 16",
    "stillpoint_call_mask_r10:",
    "lea rsp, [rsp - 160]",
    "mov [rsp], rcx",
    "mov [rsp + 24], rax",
    "mov [rsp + 8], r11",
    "mov [rsp + 16], r10",
    "lea r10, [rsp + 8]",
    "syscall",
    "mov r10, [rsp + 16]",
    "ret 152",
    // ... for the fifth argument (epoll_pwait).
    ".balign 16",
    "stillpoint_call_mask_r8:",
    "lea rsp, [rsp - 160]",
    "mov [rsp], rcx",
    "mov [rsp + 24], rax",
    "mov [rsp + 8], r11",
    "mov [rsp + 16], r8",
    "lea r8, [rsp + 8]",
    "syscall",
    "mov r8, [rsp + 16]",
    "ret 152",
    // ... for the structure that the sixth argument points to (pselect6).
    ".balign 16",
    "stillpoint_call_mask_r9:",
    "lea rsp, [rsp - 192]",
    "mov [rsp], rcx",
    "mov [rsp + 8], r11",
    "mov [rsp + 16], r9",
    "mov [rsp + 24], rax",
    "lea r11, [rsp + 8]",
    "mov [rsp + 32], r11",
    "mov qword ptr [rsp + 40], 8",
    "lea r9, [rsp + 32]",
    "syscall",
    "mov r9, [rsp + 16]",
    "ret 184",
    // nanosleep without a place for what is left of the sleep when a signal ends it: it gets one, so that the sleep can
    // go on with that.
    ".balign 16",
    "stillpoint_call_rest_rsi:",
    "lea rsp, [rsp - 176]",
    "mov [rsp], rcx",
    "mov [rsp + 24], rax",
    "mov [rsp + 32], rdi",
    "lea rsi, [rsp + 8]",
    "syscall",
    "mov rdi, [rsp + 32]",
    "mov esi, 0",
    "ret 168",
    // ... clock_nanosleep.
    ".balign 16",
    "stillpoint_call_rest_r10:",
    "lea rsp, [rsp - 176]",
    "mov [rsp], rcx",
    "mov [rsp + 24], rax",
    "mov [rsp + 32], rdx",
    "lea r10, [rsp + 8]",
    "syscall",
    "mov rdx, [rsp + 32]",
    "mov r10d, 0",
    "ret 168",
    // recvmsg: the descriptors in its control messages are the upper half's. rsi: struct msghdr.
    ".balign 16",
    "stillpoint_call_recvmsg:",
    "lea rsp, [rsp - 192]",
    "mov [rsp], rcx",
    "mov [rsp + 24], rax",
    "syscall",
    "test rax, rax",
    "js 9f",
    "mov [rsp + 8], rdi",
    "mov [rsp + 16], rdx",
    "mov [rsp + 32], r8",
    "mov [rsp + 40], r9",
    "mov rdi, rsi",
    "call stillpoint_note_message",
    "mov rdi, [rsp + 8]",
    "mov rdx, [rsp + 16]",
    "mov r8, [rsp + 32]",
    "mov r9, [rsp + 40]",
    "9:",
    "ret 184",
    // recvmmsg: rsi: structs mmsghdr, of 64 bytes each; the result says how many messages have come.
    ".balign 16",
    "stillpoint_call_recvmmsg:",
    "lea rsp, [rsp - 192]",
    "mov [rsp], rcx",
    "mov [rsp + 24], rax",
    "syscall",
    "test rax, rax",
    "js 9f",
    "mov [rsp + 8], rdi",
    "mov [rsp + 16], rdx",
    "mov [rsp + 32], r8",
    "mov [rsp + 40], r9",
    "mov [rsp + 48], r10",
    "mov [rsp + 56], rsi",
    "mov r10, rax",
    "2:",
    "test r10, r10",
    "jz 3f",
    "mov rdi, rsi",
    "call stillpoint_note_message",
    "add rsi, 64",
    "dec r10",
    "jmp 2b",
    "3:",
    "mov rdi, [rsp + 8]",
    "mov rdx, [rsp + 16]",
    "mov r8, [rsp + 32]",
    "mov r9, [rsp + 40]",
    "mov r10, [rsp + 48]",
    "mov rsi, [rsp + 56]",
    "9:",
    "ret 184",
    // Notes the descriptors that a message has brought. rdi: its struct msghdr; changes rcx, rdx, rdi, r8, r9, r11.
    "stillpoint_note_message:",
    "mov rdx, [rdi + 40]", // the control messages' bytes
    "mov rdi, [rdi + 32]", // ... and where they begin
    "add rdx, rdi",
    "movabs r9, {descriptors}",
    "2:",
    "lea rcx, [rdi + 16]",
    "cmp rcx, rdx",
    "ja 8f",
    "mov r8, [rdi]", // cmsg_len
    "cmp r8, 16",
    "jb 8f",
    "lea r11, [rdi + r8]", // this one's end
    "cmp r11, rdx",
    "ja 8f",
    "cmp dword ptr [rdi + 8], 1", // SOL_SOCKET
    "jne 5f",
    "cmp dword ptr [rdi + 12], 1", // SCM_RIGHTS
    "je 4f",
    "cmp dword ptr [rdi + 12], 4", // SCM_PIDFD
    "jne 5f",
    "4:",
    "lea r8, [rcx + 4]",
    "cmp r8, r11",
    "ja 5f",
    "mov ecx, [rcx]",
    "cmp rcx, {descriptor_limit}",
    "jae 6f",
    "lock bts qword ptr [r9], rcx",
    "6:",
    "mov rcx, r8",
    "jmp 4b",
    "5:",
    "mov r8, [rdi]",
    "add r8, 7",
    "and r8, -8",
    "add rdi, r8",
    "jmp 2b",
    "8:",
    "ret",
    // r11: operation and expected value of a wait on the futex that rdi leads to. Whatever comes of it, the call that was
    // trapped is made again.
    ".balign 16",
    "stillpoint_call_futex_again:",
    "lea rsp, [rsp - 192]",
    "sub rcx, 2",
    "mov [rsp], rcx",
    "mov [rsp + 24], rax",
    "mov [rsp + 8], rsi",
    "mov [rsp + 16], rdx",
    "mov [rsp + 32], r8",
    "mov [rsp + 40], r9",
    "mov edx, r11d",
    "shr r11, 32",
    "mov esi, r11d",
    "xor r8d, r8d",
    "mov r9d, -1",
    "syscall",
    "mov rsi, [rsp + 8]",
    "mov rdx, [rsp + 16]",
    "mov rax, [rsp + 24]",
    "mov r8, [rsp + 32]",
    "mov r9, [rsp + 40]",
    "ret 184",
    // (signal, info, context): the handler of every signal that the application handles.
    ".balign 16",
    "stillpoint_trampoline:",
    "push rbp",
    "mov rbp, rsp",
    "push rbx",
    "push r12",
    "push r13",
    "push r14",
    "mov rbx, rdi",
    "mov r12, rsi",
    "mov r13, rdx",
    "movabs rax, {enter_handler}",
    "call [rax]",
    "mov r14, rdx",
    "test rax, rax",
    "jz 2f",
    "mov rdi, rbx",
    "mov rsi, r12",
    "mov rdx, r13",
    "call rax",
    "2:",
    "mov rdi, r14",
    "mov rsi, r13",
    "movabs rax, {leave_handler}",
    "call [rax]",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbx",
    "pop rbp",
    "ret",
    // ThreadRecord.private[0] |= 1 (a stop is asked for); tgkill(pid, tid, stop signal).
    ".balign 16",
    "stillpoint_park_self:",
    "lock or qword ptr gs:[0x40], 1",
    "movabs rax, {real_pid}",
    "mov edi, [rax]",
    "mov esi, gs:[0x34]",
    "movabs rax, {stop_signal}",
    "mov edx, [rax]",
    "mov eax, 234",
    "syscall",
    "ret",
    ".balign 16",
    "stillpoint_clock_gettime:",
    "mov eax, 228",
    "syscall",
    "ret",
    ".balign 16",
    "stillpoint_gettimeofday:",
    "mov eax, 96",
    "syscall",
    "ret",
    ".balign 16",
    "stillpoint_time:",
    "mov eax, 201",
    "syscall",
    "ret",
    ".balign 16",
    "stillpoint_getcpu:",
    "mov eax, 309",
    "syscall",
    "ret",
    "stillpoint_springboard_end:",
    ".popsection",
    descriptor_limit = const DESCRIPTOR_LIMIT,
    descriptors = const DESCRIPTORS,
    enter_handler = const slot(Slot::EnterHandler),
    leave_handler = const slot(Slot::LeaveHandler),
    real_pid = const slot(Slot::RealPid),
    stop_signal = const slot(Slot::StopSignal),
);

unsafe extern "C" {
    static stillpoint_springboard_start: u8;
    static stillpoint_springboard_end: u8;
    static stillpoint_restorer: u8;
    static stillpoint_call_plain: u8;
    static stillpoint_call_noting: u8;
    static stillpoint_call_rdi_noting: u8;
    static stillpoint_call_rsi_noting: u8;
    static stillpoint_call_mask_rdi: u8;
    static stillpoint_call_mask_rsi_noting: u8;
    static stillpoint_call_mask_r10: u8;
    static stillpoint_call_mask_r8: u8;
    static stillpoint_call_mask_r9: u8;
    static stillpoint_call_rest_rsi: u8;
    static stillpoint_call_rest_r10: u8;
    static stillpoint_call_recvmsg: u8;
    static stillpoint_call_recvmmsg: u8;
    static stillpoint_call_futex_again: u8;
    static stillpoint_trampoline: u8;
    static stillpoint_park_self: u8;
    static stillpoint_clock_gettime: u8;
    static stillpoint_gettimeofday: u8;
    static stillpoint_time: u8;
    static stillpoint_getcpu: u8;
}

/// The pieces of the springboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    Restorer,
    CallPlain,
    CallNoting,
    CallRdiNoting,
    CallRsiNoting,
    CallMaskRdi,
    CallMaskRsiNoting,
    CallMaskR10,
    CallMaskR8,
    CallMaskR9,
    CallRestRsi,
    CallRestR10,
    CallRecvmsg,
    CallRecvmmsg,
    CallFutexAgain,
    Trampoline,
    ParkSelf,
    ClockGettime,
    Gettimeofday,
    Time,
    Getcpu,
}

impl Piece {
    /// Where the piece lies, in every launch of this build.
    pub fn address(self) -> usize {
        let symbol = match self {
            Piece::Restorer => &raw const stillpoint_restorer,
            Piece::CallPlain => &raw const stillpoint_call_plain,
            Piece::CallNoting => &raw const stillpoint_call_noting,
            Piece::CallRdiNoting => &raw const stillpoint_call_rdi_noting,
            Piece::CallRsiNoting => &raw const stillpoint_call_rsi_noting,
            Piece::CallMaskRdi => &raw const stillpoint_call_mask_rdi,
            Piece::CallMaskRsiNoting => &raw const stillpoint_call_mask_rsi_noting,
            Piece::CallMaskR10 => &raw const stillpoint_call_mask_r10,
            Piece::CallMaskR8 => &raw const stillpoint_call_mask_r8,
            Piece::CallMaskR9 => &raw const stillpoint_call_mask_r9,
            Piece::CallRestRsi => &raw const stillpoint_call_rest_rsi,
            Piece::CallRestR10 => &raw const stillpoint_call_rest_r10,
            Piece::CallRecvmsg => &raw const stillpoint_call_recvmsg,
            Piece::CallRecvmmsg => &raw const stillpoint_call_recvmmsg,
            Piece::CallFutexAgain => &raw const stillpoint_call_futex_again,
            Piece::Trampoline => &raw const stillpoint_trampoline,
            Piece::ParkSelf => &raw const stillpoint_park_self,
            Piece::ClockGettime => &raw const stillpoint_clock_gettime,
            Piece::Gettimeofday => &raw const stillpoint_gettimeofday,
            Piece::Time => &raw const stillpoint_time,
            Piece::Getcpu => &raw const stillpoint_getcpu,
        };
        SPRINGBOARD + (symbol as usize - &raw const stillpoint_springboard_start as usize)
    }
}

/// The instruction `syscall`.
pub const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// Whether a result in rax at this address is a fresh descriptor that has not been noted yet.
pub fn about_to_note(rip: usize) -> bool {
    let pieces = [
        (Piece::CallNoting, Piece::CallRdiNoting),
        (Piece::CallRdiNoting, Piece::CallRsiNoting),
        (Piece::CallRsiNoting, Piece::CallMaskRdi),
        (Piece::CallMaskRsiNoting, Piece::CallMaskR10),
    ];
    pieces.iter().any(|(from, to)| {
        // Before its `syscall` rax still is the call's number, and noting that would be wrong: so only from there on.
        (after_call(from.address())..to.address()).contains(&rip)
    })
}

/// The address behind the `syscall` of the piece at `address`.
fn after_call(address: usize) -> usize {
    // SAFETY: the springboard is mapped readable; no piece is longer than 96 bytes before its call.
    let code = unsafe { core::slice::from_raw_parts(address as *const u8, 96) };
    let at = code
        .windows(2)
        .position(|pair| pair == SYSCALL)
        .unwrap_or(0);
    address + at + 2
}

/// The number of the system call that a piece has just made: `rip` is the address behind its `syscall`, `rsp` the stack
/// pointer there.
///
/// # Safety
/// Both must be those of one thread.
pub unsafe fn call_behind(rip: usize, rsp: usize) -> Option<usize> {
    let pieces = Piece::CallPlain.address()..Piece::Trampoline.address();
    if !pieces.contains(&rip) || !pieces.contains(&(rip - 2)) {
        return None;
    }
    // SAFETY: inside the springboard; every piece in this range keeps the number there.
    unsafe {
        let instruction = ((rip - 2) as *const [u8; 2]).read();
        (instruction == SYSCALL).then(|| ((rsp + 24) as *const usize).read())
    }
}

/// Whether code at this address is the springboard's: it is there at the same place in every launch.
pub fn holds(rip: usize) -> bool {
    (SPRINGBOARD..SPRINGBOARD + SPRINGBOARD_BYTES).contains(&rip)
}

/// Whether code at this address leads into a handler of the application or out of one. What that handler has interrupted lies
/// beneath, but nobody has noted it yet, or nobody has it noted any more.
pub fn leads_to_handler(rip: usize) -> bool {
    let range = |from: Piece, to: Piece| from.address()..to.address();
    range(Piece::Trampoline, Piece::ParkSelf).contains(&rip)
        || range(Piece::Restorer, Piece::CallPlain).contains(&rip)
}

/// Whether code at this address is about to send its own thread the stop signal. The ids in its registers, and the note that
/// says who sends it, are this launch's: in another one the signal would be taken for a stranger's, and end the process.
pub fn about_to_stop(rip: usize) -> bool {
    let piece = Piece::ParkSelf.address();
    (piece..after_call(piece)).contains(&rip)
}

/// The code to copy to [`SPRINGBOARD`].
pub fn code() -> &'static [u8] {
    let start = &raw const stillpoint_springboard_start;
    let bytes = &raw const stillpoint_springboard_end as usize - start as usize;
    debug_assert!(bytes <= SPRINGBOARD_BYTES);
    // SAFETY: both labels bound the code above, which never changes.
    unsafe { core::slice::from_raw_parts(start, bytes.min(SPRINGBOARD_BYTES)) }
}
