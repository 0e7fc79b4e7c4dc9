//! `MPI_Test` and `MPI_Testany` of one light receive that is not over, as programs poll, and `MPI_Wait` of one that is.
//!
//! They are written out because the compiler keeps what is needed when the receive is over, or has failed, in registers, which have to be saved for every
//! call. Here it lies on the stack, and nobody takes it from there while nothing has come. Whatever else is asked goes another way, from its beginning.
//!
//! Rules: as in `short`.

/// The body of the naked function that is such a stub; `one` says whether it has a count and an index. `long` is called as the stub was, from the application. `over`, with
/// the handle's place, and `failed`, with the stub's arguments and the real MPI's code behind them, are called when it has come out of the real MPI.
#[cfg_attr(application = "mpich", expect(unused_macros))]
macro_rules! asked {
    (table: $table:path, slot: $slot:expr, one: $one:literal, form: $form:expr, long: $long:path, over: $over:path, failed: $failed:path) => {
        core::arch::naked_asm!(
            ".cfi_startproc",
            "cmp dword ptr gs:[0x1c], 0",
            "jne {long}",
            // The flag is the last but one; the stack is even with an odd number of these.
            ".if {one}",
            "cmp edi, 1", "jne {long}",
            "push rsi",
            "mov rsi, [rsi]",
            "cmp rsi, 4096", "jb 5f",
            "cmp dword ptr [rsi + {form_at}], {form}", "jne 5f",
            "push rdx", "push r8", "push rcx", "push rax",
            ".else",
            "push rdi",
            "mov rdi, [rdi]",
            "cmp rdi, 4096", "jb 5f",
            "cmp dword ptr [rdi + {form_at}], {form}", "jne 5f",
            "push rsi", "push rdx",
            ".endif",
            ".cfi_adjust_cfa_offset {frame}",
            "call qword ptr [rip + {table} + {slot}]",
            "test eax, eax",
            "jne 3f",
            "mov rcx, [rsp + 8]",
            "cmp dword ptr [rcx], 0",
            "jne 4f",
            "add rsp, {frame}",
            ".cfi_remember_state",
            ".cfi_adjust_cfa_offset -{frame}",
            "ret",
            "3:",
            ".cfi_restore_state",
            ".cfi_remember_state",
            ".if {one}",
            "mov r9d, eax", "mov edi, 1",
            "pop rax", "pop rcx", "pop r8", "pop rdx", "pop rsi",
            ".else",
            "mov ecx, eax",
            "pop rdx", "pop rsi", "pop rdi",
            ".endif",
            ".cfi_adjust_cfa_offset -{frame}",
            "jmp {failed}",
            "4:",
            ".cfi_restore_state",
            ".if {one}", "mov rdi, [rsp + 32]", ".else", "mov rdi, [rsp + 16]", ".endif",
            "add rsp, {frame}",
            ".cfi_adjust_cfa_offset -{frame}",
            "jmp {over}",
            "5:",
            ".if {one}", "pop rsi", ".else", "pop rdi", ".endif",
            "jmp {long}",
            ".cfi_endproc",
            one = const $one as u32,
            frame = const if $one { 40 } else { 24 },
            table = sym $table,
            slot = const $slot,
            form_at = const core::mem::offset_of!($crate::ground::object::Object, clock),
            form = const $form,
            long = sym $long,
            failed = sym $failed,
            over = sym $over,
        )
    };
}

/// The body of the naked function that is the stub of `MPI_Wait`. It asks once, by the function at `slot`, `MPI_Test`: a receive that is over rests, and the handle gets what lies at `null`.
/// `told`, with the stub's arguments, is for the handle that lies at `sent`, the request of sends that are over; `long` and `failed` are as above.
#[cfg_attr(application = "mpich", expect(unused_macros))]
macro_rules! waited {
    (table: $table:path, slot: $slot:expr, form: $form:expr, resting: $resting:expr, sent: $sent:path, null: $null:path, told: $told:path, long: $long:path, over: $over:path,
     failed: $failed:path) => {
        core::arch::naked_asm!(
            ".cfi_startproc",
            "mov rax, [rdi]",
            "cmp rax, [rip + {sent}]",
            "je {told}",
            "cmp dword ptr gs:[0x1c], 0",
            "jne {long}",
            "cmp rax, 4096", "jb {long}",
            "cmp dword ptr [rax + {form_at}], {form}", "jne {long}",
            "push rsi",
            "push rdi",
            // The flag.
            "push 0",
            ".cfi_adjust_cfa_offset 24",
            "mov rdx, rsi",
            "mov rdi, rax",
            "mov rsi, rsp",
            "call qword ptr [rip + {table} + {slot}]",
            "pop rcx", "pop rdi", "pop rsi",
            ".cfi_adjust_cfa_offset -24",
            "test eax, eax",
            "jne 3f",
            "test ecx, ecx",
            "je {long}",
            "mov rcx, [rdi]",
            // What the real MPI has called may have looked at it.
            "cmp dword ptr [rcx + {form_at}], {form}",
            "jne {over}",
            // The form, and what lies beside it.
            "mov qword ptr [rcx + {form_at}], {resting}",
            "inc qword ptr gs:[0x28]",
            "mov rcx, [rip + {null}]",
            "mov [rdi], rcx",
            "ret",
            "3:",
            "mov edx, eax",
            "jmp {failed}",
            ".cfi_endproc",
            table = sym $table,
            slot = const $slot,
            form_at = const core::mem::offset_of!($crate::ground::object::Object, clock),
            form = const $form,
            resting = const $resting,
            sent = sym $sent,
            null = sym $null,
            told = sym $told,
            long = sym $long,
            failed = sym $failed,
            over = sym $over,
        )
    };
}
pub(crate) use {asked, waited};
