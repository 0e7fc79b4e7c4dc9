//! The stubs of frequent messages and probes, the short way from their first instruction to their last.
//!
//! They are written out because no other way is cheap enough: arguments stay in their registers, and values that only an error needs are on the stack once.
//! Every unusual call goes to `long` from the beginning, with its original arguments.
//!
//! Rules: as in `direct`. No thread is stopped in this library's code (`UpperHooks::closed`), nor in the lower half's. So nothing comes between a stub's look
//! and its action, except the functions that the real MPI calls. A call that comes back by itself need not say that it is inside. A call that may wait for
//! others says so: the agent wants to know.
//!
//! If handles are numbers (`narrow`), objects are found on the way (`numbers`), and `long` gets the application's own arguments.
//!
//! Offsets into the thread's record are spelled out, as in the file above this one.

/// The end of a stub whose function has failed: the communicator is in RDI, the code in EAX.
macro_rules! fails {
    ($name:literal) => {
        concat!(
            "mov esi, eax\n",
            "lea rdx, [rip + 9f]\n",
            "jmp {failed}\n",
            ".cfi_endproc\n",
            ".pushsection .rodata.stillpoint_names, \"a\", @progbits\n",
            "9: .asciz \"",
            $name,
            "\"\n",
            ".popsection"
        )
    };
}

/// `MPI_Send` and its modes. `failed(communicator, code, name)` is called after an error.
macro_rules! sent {
    ($name:literal, table: $table:path, slot: $slot:expr, long: $long:path, failed: $failed:path) => {
        core::arch::naked_asm!(
            ".cfi_startproc",
            concat!("mov eax, ", stillpoint_wrappers::record!(inside)),
            concat!("or eax, ", stillpoint_wrappers::record!(reach)),
            "jne {long}",
            ".if {narrow}",
            "lea r11, [rip + {known}]",
            $crate::ground::arch::object_of!("edx", "dl" => "rax", "eax", "datatypes"),
            $crate::ground::arch::object_of!("r9d", "r9b" => "r10", "r10d", "communicators"),
            ".else",
            "cmp rdx, 4096", "jb {long}",
            "cmp r9, 4096", "jb {long}",
            ".endif",
            "cmp ecx, {nobody}", "je {long}",
            concat!("mov dword ptr ", stillpoint_wrappers::record!(inside), ", {inside}"),
            concat!("inc qword ptr ", stillpoint_wrappers::record!(sent)),
            ".if {narrow}",
            "push r10",
            "mov rdx, [rax + {lower}]",
            "mov r9, [r10 + {lower}]",
            ".else",
            "push r9",
            "mov rdx, [rdx + {lower}]",
            "mov r9, [r9 + {lower}]",
            ".endif",
            ".cfi_adjust_cfa_offset 8",
            "call qword ptr [rip + {table} + {slot}]",
            concat!("mov dword ptr ", stillpoint_wrappers::record!(inside), ", 0"),
            "pop rdi",
            ".cfi_adjust_cfa_offset -8",
            "test eax, eax",
            "jne 2f",
            "ret",
            "2:",
            concat!("dec qword ptr ", stillpoint_wrappers::record!(sent)),
            $crate::ground::arch::fails!($name),
            nobody = const $crate::ground::abi::PROC_NULL,
            inside = const stillpoint_wrappers::gate::Inside::Stub as u32,
            lower = const core::mem::offset_of!($crate::ground::object::Object, lower),
            narrow = const $crate::ground::narrow::NARROW as u32,
            known = sym $crate::ground::narrow::KNOWN,
            number = const $crate::ground::narrow::NUMBER,
            datatypes = const $crate::ground::narrow::known_of(stillpoint_wrappers::gate::HandleKind::Datatype),
            communicators = const $crate::ground::narrow::known_of(stillpoint_wrappers::gate::HandleKind::Communicator),
            table = sym $table,
            slot = const $slot,
            long = sym $long,
            failed = sym $failed,
        )
    };
}

/// `MPI_Isend` and its modes. If the real MPI's answer is `word`, the request of all sends that are over at once, the application gets `over`. Otherwise it
/// gets the result of `under_way(kind, word, communicator)`.
macro_rules! send_begun {
    ($name:literal, table: $table:path, slot: $slot:expr, kind: $kind:expr, long: $long:path, word: $word:path, over: $over:path, under_way: $under_way:path,
     failed: $failed:path) => {
        core::arch::naked_asm!(
            ".cfi_startproc",
            concat!("cmp dword ptr ", stillpoint_wrappers::record!(reach), ", 0"),
            "jne {long}",
            ".if {narrow}",
            "lea r11, [rip + {known}]",
            $crate::ground::arch::object_of!("edx", "dl" => "rax", "eax", "datatypes"),
            $crate::ground::arch::object_of!("r9d", "r9b" => "r10", "r10d", "communicators"),
            ".else",
            "cmp rdx, 4096", "jb {long}",
            "cmp r9, 4096", "jb {long}",
            ".endif",
            "cmp ecx, {nobody}", "je {long}",
            // The communicator, room for the real MPI's request, and the address of that room: the last argument.
            ".if {narrow}",
            "push r10",
            // The real MPI writes only the lower half of the room.
            "push 0",
            "push rsp",
            "mov rdx, [rax + {lower}]",
            "mov r9, [r10 + {lower}]",
            ".else",
            "push r9",
            "push rax",
            "push rsp",
            "mov rdx, [rdx + {lower}]",
            "mov r9, [r9 + {lower}]",
            ".endif",
            ".cfi_adjust_cfa_offset 24",
            "call qword ptr [rip + {table} + {slot}]",
            "test eax, eax",
            "jne 4f",
            concat!("inc qword ptr ", stillpoint_wrappers::record!(sent)),
            "mov rsi, [rsp + 8]",
            "cmp rsi, [rip + {word}]",
            "jne 3f",
            "mov rcx, [rip + {over}]",
            "5:",
            "mov rdx, [rsp + 32]",
            ".if {narrow}", "mov ecx, [rcx + {number}]", "mov [rdx], ecx", ".else", "mov [rdx], rcx", ".endif",
            "add rsp, 24",
            ".cfi_remember_state",
            ".cfi_adjust_cfa_offset -24",
            "ret",
            "3:",
            ".cfi_restore_state",
            "mov edi, {kind}",
            "mov rdx, [rsp + 16]",
            "call {under_way}",
            "mov rcx, rax",
            "xor eax, eax",
            "jmp 5b",
            "4:",
            "add rsp, 16",
            ".cfi_adjust_cfa_offset -16",
            "pop rdi",
            ".cfi_adjust_cfa_offset -8",
            $crate::ground::arch::fails!($name),
            nobody = const $crate::ground::abi::PROC_NULL,
            lower = const core::mem::offset_of!($crate::ground::object::Object, lower),
            kind = const $kind,
            narrow = const $crate::ground::narrow::NARROW as u32,
            known = sym $crate::ground::narrow::KNOWN,
            number = const $crate::ground::narrow::NUMBER,
            datatypes = const $crate::ground::narrow::known_of(stillpoint_wrappers::gate::HandleKind::Datatype),
            communicators = const $crate::ground::narrow::known_of(stillpoint_wrappers::gate::HandleKind::Communicator),
            table = sym $table,
            slot = const $slot,
            long = sym $long,
            word = sym $word,
            over = sym $over,
            under_way = sym $under_way,
            failed = sym $failed,
        )
    };
}

/// `MPI_Irecv` with a predefined datatype. Its arguments go to the slot at `next`, which is taken once the real MPI has the receive. The slot is of
/// form `resting` before and `receive` then, and leads to the next slot. If the slot's last receive had the same datatype and communicator, both have
/// been checked and stand there.
macro_rules! receive_begun {
    ($name:literal, table: $table:path, slot: $slot:expr, request: $request:path, next: $next:path, link: $link:expr, resting: $resting:expr, receive: $receive:expr,
     long: $long:path, failed: $failed:path) => {
        core::arch::naked_asm!(
            ".cfi_startproc",
            concat!("cmp dword ptr ", stillpoint_wrappers::record!(reach), ", 0"),
            "jne {long}",
            "cmp ecx, {nobody}", "je {long}",
            "mov rax, [rip + {next}]",
            "cmp dword ptr [rax + {form}], {resting}", "jne {long}",
            ".if {narrow}",
            "mov r10, [rax + {datatype}]",
            "cmp [r10 + {number}], edx", "jne 6f",
            "mov r11, [rax + {communicator}]",
            "cmp [r11 + {number}], r9d", "jne 6f",
            ".else",
            "cmp rdx, [rax + {datatype}]", "jne 6f",
            "cmp r9, [rax + {communicator}]", "jne 6f",
            ".endif",
            "5:",
            "mov [rax + {buffer}], rdi",
            "mov [rax + {count}], esi",
            "mov [rax + {peer}], ecx",
            "mov [rax + {tag}], r8d",
            // The slot begins with the lower half's word; its address is the last argument.
            "push rax",
            ".cfi_adjust_cfa_offset 8",
            ".if {narrow}",
            // The real MPI writes only the lower half of the word.
            "mov qword ptr [rax], 0",
            "mov rdx, [r10 + {lower}]",
            "mov r9, [r11 + {lower}]",
            ".else",
            "mov rdx, [rdx + {lower}]",
            "mov r9, [r9 + {lower}]",
            ".endif",
            "call qword ptr [rip + {table} + {slot}]",
            "mov rdx, [rip + {next}]",
            "pop rcx",
            ".cfi_adjust_cfa_offset -8",
            "test eax, eax",
            "jne 4f",
            "mov dword ptr [rdx + {form}], {receive}",
            "mov rcx, [rdx + {link}]",
            "mov [rip + {next}], rcx",
            "mov rcx, [rsp + 8]",
            ".if {narrow}", "mov edx, [rdx + {number}]", "mov [rcx], edx", ".else", "mov [rcx], rdx", ".endif",
            "ret",
            "6:",
            ".if {narrow}",
            "lea r11, [rip + {known}]",
            $crate::ground::arch::object_of!("edx", "dl" => "r10", "r10d", "datatypes"),
            "cmp word ptr [r10 + {standard}], 0", "je {long}",
            "mov [rax + {datatype}], r10",
            $crate::ground::arch::object_of!("r9d", "r9b" => "r10", "r10d", "communicators"),
            "mov [rax + {communicator}], r10",
            "mov r11, r10",
            "mov r10, [rax + {datatype}]",
            ".else",
            "cmp rdx, 4096", "jb {long}",
            "cmp r9, 4096", "jb {long}",
            "cmp word ptr [rdx + {standard}], 0", "je {long}",
            "mov [rax + {datatype}], rdx",
            "mov [rax + {communicator}], r9",
            ".endif",
            "jmp 5b",
            "4:",
            "mov rdi, [rdx + {communicator}]",
            $crate::ground::arch::fails!($name),
            nobody = const $crate::ground::abi::PROC_NULL,
            lower = const {
                assert!(core::mem::offset_of!($request, head.lower) == 0);
                core::mem::offset_of!($crate::ground::object::Object, lower)
            },
            narrow = const $crate::ground::narrow::NARROW as u32,
            known = sym $crate::ground::narrow::KNOWN,
            number = const $crate::ground::narrow::NUMBER,
            datatypes = const $crate::ground::narrow::known_of(stillpoint_wrappers::gate::HandleKind::Datatype),
            communicators = const $crate::ground::narrow::known_of(stillpoint_wrappers::gate::HandleKind::Communicator),
            standard = const core::mem::offset_of!($crate::ground::object::Object, standard),
            form = const core::mem::offset_of!($request, head.clock),
            buffer = const core::mem::offset_of!($request, buffer),
            count = const core::mem::offset_of!($request, count),
            datatype = const core::mem::offset_of!($request, datatype),
            peer = const core::mem::offset_of!($request, peer),
            tag = const core::mem::offset_of!($request, tag),
            communicator = const core::mem::offset_of!($request, communicator),
            link = const $link,
            resting = const $resting,
            receive = const $receive,
            table = sym $table,
            slot = const $slot,
            next = sym $next,
            long = sym $long,
            failed = sym $failed,
        )
    };
}

/// `MPI_Recv` by the real MPI's own: see `resumable`.
#[cfg_attr(application = "mpich", expect(unused_macros))]
macro_rules! received {
    (long: $long:path) => {
        core::arch::naked_asm!(
            ".cfi_startproc",
            concat!("cmp dword ptr ", stillpoint_wrappers::record!(inside), ", 0"), "jne {long}",
            concat!("cmp qword ptr ", stillpoint_wrappers::record!(receive), ", 0"), "je {long}",
            "cmp rdx, 4096", "jb {long}",
            "cmp r9, 4096", "jb {long}",
            "cmp ecx, {nobody}", "je {long}",
            "jmp {receive}",
            ".cfi_endproc",
            nobody = const $crate::ground::abi::PROC_NULL,
            receive = sym $crate::ground::arch::stillpoint_receive,
            long = sym $long,
        )
    };
}

/// `MPI_Iprobe` while no drained message waits.
macro_rules! probed {
    ($name:literal, table: $table:path, slot: $slot:expr, drained: $drained:path, long: $long:path, failed: $failed:path) => {
        core::arch::naked_asm!(
            ".cfi_startproc",
            concat!("cmp dword ptr ", stillpoint_wrappers::record!(reach), ", 0"),
            "jne {long}",
            ".if {narrow}",
            "lea r11, [rip + {known}]",
            $crate::ground::arch::object_of!("edx", "dl" => "rax", "eax", "communicators"),
            ".else",
            "cmp rdx, 4096", "jb {long}",
            ".endif",
            "cmp qword ptr [rip + {drained}], 0", "jne {long}",
            ".if {narrow}", "push rax", "mov rdx, [rax + {lower}]", ".else", "push rdx", "mov rdx, [rdx + {lower}]", ".endif",
            ".cfi_adjust_cfa_offset 8",
            "call qword ptr [rip + {table} + {slot}]",
            "pop rdi",
            ".cfi_adjust_cfa_offset -8",
            "test eax, eax",
            "jne 2f",
            "ret",
            "2:",
            $crate::ground::arch::fails!($name),
            lower = const core::mem::offset_of!($crate::ground::object::Object, lower),
            narrow = const $crate::ground::narrow::NARROW as u32,
            known = sym $crate::ground::narrow::KNOWN,
            number = const $crate::ground::narrow::NUMBER,
            communicators = const $crate::ground::narrow::known_of(stillpoint_wrappers::gate::HandleKind::Communicator),
            table = sym $table,
            slot = const $slot,
            drained = sym $drained,
            long = sym $long,
            failed = sym $failed,
        )
    };
}

/// `MPI_Improbe` while no drained message waits. The real MPI's findings go to `found(communicator, message, status)`, and the message to the place of the
/// application's handle. A caller that ignores the status gets one on the stack, around the rest, since `found` reads it.
#[cfg_attr(application = "mpich", expect(unused_macros))]
macro_rules! matched {
    ($name:literal, table: $table:path, slot: $slot:expr, drained: $drained:path, long: $long:path, found: $found:path, failed: $failed:path) => {
        core::arch::naked_asm!(
            ".cfi_startproc",
            concat!("cmp dword ptr ", stillpoint_wrappers::record!(reach), ", 0"),
            "jne {long}",
            "cmp rdx, 4096", "jb {long}",
            "cmp qword ptr [rip + {drained}], 0", "jne {long}",
            "cmp r9, {ignored}", "je 4f",
            "5:",
            "push r9", "push r8", "push rdx", "push rcx", "push rax",
            ".cfi_adjust_cfa_offset 40",
            "mov rdx, [rdx + {lower}]",
            "call qword ptr [rip + {table} + {slot}]",
            "test eax, eax",
            "jne 2f",
            "mov rcx, [rsp + 8]",
            "cmp dword ptr [rcx], 0",
            "jne 3f",
            "add rsp, 40",
            ".cfi_remember_state",
            ".cfi_adjust_cfa_offset -40",
            "ret",
            "3:",
            ".cfi_restore_state",
            ".cfi_remember_state",
            "mov rdi, [rsp + 16]",
            "mov rsi, [rsp + 24]",
            "mov rdx, [rsp + 32]",
            "add rsp, 40",
            ".cfi_adjust_cfa_offset -40",
            "jmp {found}",
            "4:",
            "sub rsp, {status}",
            ".cfi_adjust_cfa_offset {status}",
            "mov r9, rsp",
            "call 5b",
            "add rsp, {status}",
            ".cfi_adjust_cfa_offset -{status}",
            "ret",
            "2:",
            ".cfi_restore_state",
            "mov rdi, [rsp + 16]",
            "add rsp, 40",
            ".cfi_adjust_cfa_offset -40",
            $crate::ground::arch::fails!($name),
            lower = const core::mem::offset_of!($crate::ground::object::Object, lower),
            ignored = const $crate::ground::abi::IGNORED,
            status = const {
                let bytes = size_of::<$crate::ground::abi::Status>();
                // The stack is even again at the call.
                bytes.next_multiple_of(16) + 8
            },
            table = sym $table,
            slot = const $slot,
            drained = sym $drained,
            long = sym $long,
            found = sym $found,
            failed = sym $failed,
        )
    };
}

pub(crate) use {fails, probed, receive_begun, send_begun, sent};
#[cfg(not(application = "mpich"))]
pub(crate) use {matched, received};
