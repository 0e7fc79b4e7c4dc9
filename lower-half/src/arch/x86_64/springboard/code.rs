//! The springboard's code. Registers and the words on the stack are those that the module above tells.

use core::arch::global_asm;

use stillpoint_wrappers::gate::ThreadRecord;

use crate::arch::layout::{DESCRIPTOR_LIMIT, DESCRIPTORS, Slot, slot};

const _: () = {
    // Offsets that the assembly spells out.
    assert!(core::mem::offset_of!(ThreadRecord, real_tid) == 0x34);
    assert!(core::mem::offset_of!(ThreadRecord, private) == 0x40);
};

global_asm!(
    ".pushsection .text.stillpoint_springboard, \"ax\", @progbits",
    // Seen from every part of this program (code generation units), and from nowhere else.
    ".irp name, springboard_start, springboard_end, restorer, call_plain, call_noting, call_rdi_noting, call_rsi_noting, call_mask_rdi, call_signal_mask_rdi, call_mask_rsi_noting, call_mask_r10, call_mask_r8, call_mask_r9, call_rest_rsi, call_rest_r10, call_recvmsg, call_recvmmsg, call_close, call_futex_again, trampoline, park_self, clock_gettime, gettimeofday, time, getcpu",
    ".globl stillpoint_\\name",
    ".hidden stillpoint_\\name",
    ".endr",
    // Below the red zone: the way back, and the call's number.
    ".macro begin bytes",
    "lea rsp, [rsp - \\bytes]",
    "mov [rsp], rcx",
    "mov [rsp + 24], rax",
    ".endm",
    // The call, with a register that leads to the signal mask in r11.
    ".macro call_with_mask register",
    "mov [rsp + 8], r11",
    "mov [rsp + 16], \\register",
    "lea \\register, [rsp + 8]",
    "syscall",
    "mov \\register, [rsp + 16]",
    ".endm",
    // The result is a descriptor of the upper half, if it is one.
    ".macro note_and_return",
    "cmp rax, {descriptor_limit}",
    "jae 2f",
    "movabs rcx, {descriptors}",
    "lock bts qword ptr [rcx], rax",
    "2:",
    "ret 152",
    ".endm",
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
    "begin 160",
    "syscall",
    "ret 152",
    // The call's result is a descriptor of the upper half.
    ".balign 16",
    "stillpoint_call_noting:",
    "begin 160",
    "syscall",
    "stillpoint_noting_from:",
    "note_and_return",
    // r11 takes the first argument's place.
    ".balign 16",
    "stillpoint_call_rdi_noting:",
    "begin 160",
    "mov [rsp + 8], rdi",
    "mov rdi, r11",
    "syscall",
    "mov rdi, [rsp + 8]",
    "note_and_return",
    // r11 takes the second argument's place.
    ".balign 16",
    "stillpoint_call_rsi_noting:",
    "begin 160",
    "mov [rsp + 8], rsi",
    "mov rsi, r11",
    "syscall",
    "mov rsi, [rsp + 8]",
    "note_and_return",
    // r11 is a signal mask for the first argument to point to.
    ".balign 16",
    "stillpoint_call_mask_rdi:",
    "begin 160",
    "call_with_mask rdi",
    "ret 152",
    // ... rt_sigtimedwait: what it tells of a signal that the process has sent to itself (si_code SI_USER, SI_QUEUE or SI_TKILL) names
    // the sender, by the id that the application knows. rsi: siginfo_t.
    ".balign 16",
    "stillpoint_call_signal_mask_rdi:",
    "begin 160",
    "call_with_mask rdi",
    "test rax, rax",
    "jle 9f",
    "test rsi, rsi",
    "jz 9f",
    "mov ecx, [rsi + 8]",
    "test ecx, ecx",
    "jz 2f",
    "cmp ecx, -1",
    "je 2f",
    "cmp ecx, -6",
    "jne 9f",
    "2:",
    "movabs rcx, {real_pid}",
    "mov ecx, [rcx]",
    "cmp [rsi + 16], ecx",
    "jne 9f",
    "movabs rcx, {known_pid}",
    "mov ecx, [rcx]",
    "mov [rsi + 16], ecx",
    "9:",
    "ret 152",
    // ... for the second argument (signalfd: the result is a descriptor).
    ".balign 16",
    "stillpoint_call_mask_rsi_noting:",
    "begin 160",
    "call_with_mask rsi",
    "note_and_return",
    // ... for the fourth argument (ppoll).
    ".balign 16",
    "stillpoint_call_mask_r10:",
    "begin 160",
    "call_with_mask r10",
    "ret 152",
    // ... for the fifth argument (epoll_pwait).
    ".balign 16",
    "stillpoint_call_mask_r8:",
    "begin 160",
    "call_with_mask r8",
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
    "begin 176",
    "mov [rsp + 32], rdi",
    "lea rsi, [rsp + 8]",
    "syscall",
    "mov rdi, [rsp + 32]",
    "mov esi, 0",
    "ret 168",
    // ... clock_nanosleep.
    ".balign 16",
    "stillpoint_call_rest_r10:",
    "begin 176",
    "mov [rsp + 32], rdx",
    "lea r10, [rsp + 8]",
    "syscall",
    "mov rdx, [rsp + 32]",
    "mov r10d, 0",
    "ret 168",
    // recvmsg: the descriptors in its control messages are the upper half's. rsi: struct msghdr.
    ".balign 16",
    "stillpoint_call_recvmsg:",
    "begin 192",
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
    "begin 192",
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
    // close: the descriptor is nobody's from here on. (Not before: in another launch it would be somebody else's.) rdi: its number.
    ".balign 16",
    "stillpoint_call_close:",
    "begin 160",
    "mov r11d, edi",
    "cmp r11, {descriptor_limit}",
    "jae 2f",
    "movabs rcx, {descriptors}",
    "lock btr qword ptr [rcx], r11",
    "2:",
    "syscall",
    "ret 152",
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
    // Clocks.
    ".macro system_call name, number",
    ".balign 16",
    "stillpoint_\\name:",
    "mov eax, \\number",
    "syscall",
    "ret",
    ".endm",
    "system_call clock_gettime, 228",
    "system_call gettimeofday, 96",
    "system_call time, 201",
    "system_call getcpu, 309",
    "stillpoint_springboard_end:",
    ".purgem begin",
    ".purgem call_with_mask",
    ".purgem note_and_return",
    ".purgem system_call",
    ".popsection",
    descriptor_limit = const DESCRIPTOR_LIMIT,
    descriptors = const DESCRIPTORS,
    enter_handler = const slot(Slot::EnterHandler),
    leave_handler = const slot(Slot::LeaveHandler),
    real_pid = const slot(Slot::RealPid),
    known_pid = const slot(Slot::KnownPid),
    stop_signal = const slot(Slot::StopSignal),
);

unsafe extern "C" {
    pub static stillpoint_springboard_start: u8;
    pub static stillpoint_springboard_end: u8;
    pub static stillpoint_restorer: u8;
    pub static stillpoint_call_plain: u8;
    pub static stillpoint_call_noting: u8;
    pub static stillpoint_call_rdi_noting: u8;
    pub static stillpoint_call_rsi_noting: u8;
    pub static stillpoint_call_mask_rdi: u8;
    pub static stillpoint_call_signal_mask_rdi: u8;
    pub static stillpoint_call_mask_rsi_noting: u8;
    pub static stillpoint_call_mask_r10: u8;
    pub static stillpoint_call_mask_r8: u8;
    pub static stillpoint_call_mask_r9: u8;
    pub static stillpoint_call_rest_rsi: u8;
    pub static stillpoint_call_rest_r10: u8;
    pub static stillpoint_call_recvmsg: u8;
    pub static stillpoint_call_recvmmsg: u8;
    pub static stillpoint_call_close: u8;
    pub static stillpoint_call_futex_again: u8;
    pub static stillpoint_trampoline: u8;
    pub static stillpoint_park_self: u8;
    pub static stillpoint_clock_gettime: u8;
    pub static stillpoint_gettimeofday: u8;
    pub static stillpoint_time: u8;
    pub static stillpoint_getcpu: u8;
}
