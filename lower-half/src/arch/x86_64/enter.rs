//! The first instructions in the application and in a new thread, and the last of a thread.

use core::arch::asm;

/// Starts a program as the kernel would: at `entry`, on `stack`, everything else zero.
///
/// # Safety
/// `entry` must be a program's (or its interpreter's) entry point, `stack` point to `argc`, and GS be set.
pub unsafe fn jump(entry: usize, stack: usize) -> ! {
    // SAFETY: the caller gives a program's entry point and its stack, and this function never returns, so its own frame is not used again.
    unsafe {
        asm!(
            "mov rsp, rsi",
            "xor eax, eax",
            "xor ebx, ebx",
            "xor ecx, ecx",
            "xor edx, edx",
            "xor esi, esi",
            "xor ebp, ebp",
            "xor r8d, r8d",
            "xor r9d, r9d",
            "xor r10d, r10d",
            "xor r11d, r11d",
            "xor r12d, r12d",
            "xor r13d, r13d",
            "xor r14d, r14d",
            "xor r15d, r15d",
            "push rdi",
            "xor edi, edi",
            "ret",
            in("rdi") entry,
            in("rsi") stack,
            options(noreturn),
        )
    }
}

/// Calls `function` on another stack, which grows down from `stack`, a multiple of 16.
///
/// # Safety
/// The stack must be free; `function` must return.
pub unsafe fn call_on(stack: usize, function: unsafe extern "C" fn(usize), argument: usize) {
    // SAFETY: the caller gives a free stack and a function that returns; the C ABI has the function keep r12, which holds the old stack pointer.
    unsafe {
        asm!(
            "mov r12, rsp",
            "mov rsp, {stack}",
            "call {function}",
            "mov rsp, r12",
            stack = in(reg) stack,
            function = in(reg) function,
            in("rdi") argument,
            out("r12") _,
            clobber_abi("C"),
        );
    }
}

/// Makes a `clone` whose child begins in `start(argument)` on `stack`; the child does not return from this function.
///
/// # Safety
/// The arguments must be sound for `clone(2)`; `start` must not return, and must not need anything
/// that the new thread lacks.
#[inline(never)]
pub unsafe fn clone_into(
    flags: usize,
    stack: usize,
    parent_tid: usize,
    child_tid: usize,
    tls: usize,
    start: unsafe extern "C" fn(usize) -> !,
    argument: usize,
) -> isize {
    let result;
    // SAFETY: the caller vouches for the arguments; the child finds `start` and `argument` in r12 and r13, aligns its own stack, and does not return.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "and rsp, -16",
            "mov rdi, r13",
            "call r12",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone as isize => result,
            in("rdi") flags,
            in("rsi") stack,
            in("rdx") parent_tid,
            in("r10") child_tid,
            in("r8") tls,
            in("r12") start,
            in("r13") argument,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    result
}

/// Makes a `clone` whose child continues from here on the same stack, while the parent waits for the child to execute a program or to end (`CLONE_VFORK`). The
/// child overwrites that stack, so its lower part, up to `end`, is saved at `kept` and restored before the parent continues.
///
/// # Safety
/// The flags must be sound for `clone(2)`, with `CLONE_VM` and `CLONE_VFORK`. The bytes between this function's stack pointer and `end` must fit into `kept`,
/// which nothing else may use.
#[inline(never)]
pub unsafe fn clone_onto(
    flags: usize,
    parent_tid: usize,
    child_tid: usize,
    tls: usize,
    end: usize,
    kept: usize,
) -> isize {
    let result;
    // SAFETY: the caller vouches for the flags and for `kept`; until the parent has restored its stack from there, it needs registers only.
    unsafe {
        asm!(
            "mov rsi, rsp",
            "mov rcx, r13",
            "sub rcx, rsi",
            "mov r13, rcx",
            "mov r14, rdi",
            "mov rdi, r12",
            "rep movsb",
            "mov rdi, r14",
            "xor esi, esi",
            "syscall",
            "test rax, rax",
            "jz 2f",
            "mov rcx, r13",
            "mov rsi, r12",
            "mov rdi, rsp",
            "rep movsb",
            "2:",
            inlateout("rax") libc::SYS_clone as isize => result,
            inlateout("rdi") flags => _,
            in("rdx") parent_tid,
            in("r10") child_tid,
            in("r8") tls,
            in("r12") kept,
            inlateout("r13") end => _,
            lateout("r14") _,
            lateout("rsi") _,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    result
}

/// Makes a child process that ends at once and has no exit signal, to use up an id. Returns that id, or an error; the caller must wait for the child.
pub fn take_id() -> isize {
    let result;
    // SAFETY: the child shares memory and stack, touches neither, and has ended when the parent goes on.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "mov eax, 60",
            "xor edi, edi",
            "syscall",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone as isize => result,
            in("rdi") (libc::CLONE_VM | libc::CLONE_VFORK) as usize,
            in("rsi") 0,
            in("rdx") 0,
            in("r10") 0,
            in("r8") 0,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// Ends the calling thread without touching its stack again: its joiner may free the stack at any moment.
///
/// # Safety
/// The thread must not be needed any more.
pub unsafe fn exit_thread(status: usize) -> ! {
    // SAFETY: the caller does not need the thread any more; the call ends this thread alone and reads no memory.
    unsafe { asm!("mov eax, 60", "syscall", "ud2", in("rdi") status, options(noreturn, nostack)) }
}
