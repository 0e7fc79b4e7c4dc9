//! The steps of a blocking collective operation's stub, each the text of its instructions. Words in braces are operands of `collective!`; `.if` asks what
//! the operation is when the stub is assembled.
//!
//! The communicator is the last argument: the first, fifth or sixth one in its register, a later one on the stack, from where [`counts`] loads it into r11.

/// The lines of a step.
macro_rules! lines {
    ($($line:expr),+ $(,)?) => {
        concat!($($line, "\n"),+)
    };
}
pub(crate) use lines;

/// A step for each handle among the registers' arguments; the communicator is left out.
macro_rules! each_handle {
    ($step:ident) => {
        $crate::ground::arch::steps::lines!(
            ".if {handles} & 1",
            $crate::ground::arch::steps::$step!("rdi"),
            ".endif",
            ".if {handles} & 2",
            $crate::ground::arch::steps::$step!("rsi"),
            ".endif",
            ".if {handles} & 4",
            $crate::ground::arch::steps::$step!("rdx"),
            ".endif",
            ".if {handles} & 8",
            $crate::ground::arch::steps::$step!("rcx"),
            ".endif",
            ".if {handles} & 16",
            $crate::ground::arch::steps::$step!("r8"),
            ".endif",
            ".if {handles} & 32",
            $crate::ground::arch::steps::$step!("r9"),
            ".endif",
        )
    };
}
pub(crate) use each_handle;

/// A step for the communicator, if it is in a register.
macro_rules! communicator {
    ($step:ident) => {
        $crate::ground::arch::steps::lines!(
            ".if {arguments} == 1",
            $crate::ground::arch::steps::$step!("rdi"),
            ".endif",
            ".if {arguments} == 5",
            $crate::ground::arch::steps::$step!("r8"),
            ".endif",
            ".if {arguments} == 6",
            $crate::ground::arch::steps::$step!("r9"),
            ".endif",
        )
    };
}
pub(crate) use communicator;

/// A handle that leads to no object goes the long way.
macro_rules! looked_at {
    ($handle:literal) => {
        concat!("cmp ", $handle, ", 4096\njb {long}")
    };
}
pub(crate) use looked_at;

/// The real MPI's handle takes the place of the object's address.
macro_rules! real_handle {
    ($handle:literal) => {
        concat!("mov ", $handle, ", [", $handle, " + {lower}]")
    };
}
pub(crate) use real_handle;

/// Looks at the handles, if they may lead to no objects; [`counts`] looks at the communicator.
macro_rules! look_at_handles {
    () => {
        $crate::ground::arch::steps::lines!(
            ".if {looks}",
            $crate::ground::arch::steps::each_handle!(looked_at),
            ".if {handles} & 64",
            "mov r11, [rsp + 8]",
            $crate::ground::arch::steps::looked_at!("r11"),
            ".endif",
            ".if {handles} & 128",
            "mov r11, [rsp + 16]",
            $crate::ground::arch::steps::looked_at!("r11"),
            ".endif",
            ".endif",
        )
    };
}
pub(crate) use look_at_handles;

/// Loads the address of the counts of the communicator in a register.
macro_rules! counts_of {
    ($communicator:literal) => {
        $crate::ground::arch::steps::lines!(
            ".if {looks}",
            $crate::ground::arch::steps::looked_at!($communicator),
            ".endif",
            concat!("mov rax, [", $communicator, " + {counts}]"),
        )
    };
}
pub(crate) use counts_of;

/// Loads the address of the communicator's counts into rax.
macro_rules! counts {
    () => {
        $crate::ground::arch::steps::lines!(
            $crate::ground::arch::steps::communicator!(counts_of),
            ".if {arguments} > 6",
            "mov r11, [rsp + 8 * ({arguments} - 6)]",
            $crate::ground::arch::steps::counts_of!("r11"),
            ".endif",
        )
    };
}
pub(crate) use counts;

/// Computes the length of the input into r10. A null address, and a communicator without a rank (`MPI_COMM_NULL`), go the long way, where MPI reports them. So
/// does a long input; `between` makes the length too large if the datatype has gaps.
macro_rules! measure_input {
    () => {
        $crate::ground::arch::steps::lines!(
            ".if {arguments} == 6",
            "test rsi, rsi",
            "je {long}",
            "mov r10d, edx",
            "imul r10, [rcx + {between}]",
            ".if {keeps} == {each}",
            "mov r11d, dword ptr [r9 + {members}]",
            "imul r10, r11",
            ".endif",
            ".else",
            "test rcx, rcx",
            "je {long}",
            "mov r10d, r8d",
            "imul r10, [r9 + {between}]",
            ".if {keeps} == {own}",
            "cmp dword ptr [r11 + {rank}], 0",
            "jl {long}",
            ".elseif {keeps} == {each}",
            "mov esi, dword ptr [r11 + {members}]",
            "imul r10, rsi",
            ".endif",
            ".endif",
            "cmp r10, {beside}",
            "ja {long}",
        )
    };
}
pub(crate) use measure_input;

/// Notes the operation in the log of the counts at rax, which has room for 256 operations.
macro_rules! note {
    () => {
        $crate::ground::arch::steps::lines!(
            "mov r11d, dword ptr [rax + {seq}]",
            "movzx r10d, r11b",
            "mov dword ptr [rax + r10 * 4 + {numbers}], r11d",
            "mov dword ptr [rax + r10 * 4 + {log_counts}], esi",
            "mov qword ptr [rax + r10 * 8 + {log_types}], rdx",
            ".if {arguments} == 5",
            "mov dword ptr [rax + r10 * 4 + {log_roots}], ecx",
            ".else",
            "mov r11d, dword ptr [rsp + 8 * ({arguments} - 7)]",
            "mov dword ptr [rax + r10 * 4 + {log_roots}], r11d",
            "mov r11, [rsp + 8 * ({arguments} - 6)]",
            ".endif",
        )
    };
}
pub(crate) use note;

/// Stores the registers' arguments that the log does not have, with what lies above them.
macro_rules! store_arguments {
    () => {
        $crate::ground::arch::steps::lines!(
            ".if {keeps}",
            "sub rsp, {kept}",
            ".elseif {pad}",
            "push rax",
            ".endif",
            ".if {arguments} > 5",
            "push r9",
            ".endif",
            ".if {arguments} > 4",
            "push r8",
            ".if {root_kept}",
            "push rcx",
            ".endif",
            "push rdx",
            ".if {noted} == 0",
            "push rsi",
            ".endif",
            ".endif",
            "push rdi",
        )
    };
}
pub(crate) use store_arguments;

/// Loads the registers' arguments again, and gives the stack back.
macro_rules! load_arguments {
    () => {
        $crate::ground::arch::steps::lines!(
            "pop rdi",
            ".if {arguments} > 4",
            ".if {noted} == 0",
            "pop rsi",
            ".endif",
            "pop rdx",
            ".if {root_kept}",
            "pop rcx",
            ".endif",
            "pop r8",
            ".endif",
            ".if {arguments} > 5",
            "pop r9",
            ".endif",
            ".if {keeps}",
            "add rsp, {kept}",
            ".elseif {pad}",
            "pop rax",
            ".endif",
        )
    };
}
pub(crate) use load_arguments;

/// Pushes the argument that came on the stack behind those that are pushed: a handle as the real MPI has it.
macro_rules! push_stacked {
    ($handle:literal) => {
        $crate::ground::arch::steps::lines!(
            concat!(".if {handles} & ", $handle),
            "mov r10, [rsp + {stacked}]",
            "push qword ptr [r10 + {lower}]",
            ".else",
            "push qword ptr [rsp + {stacked}]",
            ".endif",
        )
    };
}
pub(crate) use push_stacked;

/// Pushes the arguments that the real function gets on the stack. Each push moves the stack so that the argument before lies at `stacked`.
macro_rules! push_arguments {
    () => {
        $crate::ground::arch::steps::lines!(
            ".if {arguments} > 6",
            "push qword ptr [r11 + {lower}]",
            ".endif",
            ".if {arguments} > 8",
            $crate::ground::arch::steps::push_stacked!("128"),
            ".endif",
            ".if {arguments} > 7",
            $crate::ground::arch::steps::push_stacked!("64"),
            ".endif",
        )
    };
}
pub(crate) use push_arguments;

/// Copies the input, which is in place and has the length in r10, to the stack. The amount that is sent does not matter in place.
macro_rules! copy_input {
    () => {
        $crate::ground::arch::steps::lines!(
            ".if {keeps} == {own}",
            "mov esi, dword ptr [r11 + {rank}]",
            "imul rsi, r10",
            "add rsi, rcx",
            ".elseif {arguments} > 6",
            "mov rsi, rcx",
            ".endif",
            "mov ecx, r10d",
            "lea rdi, [rsp + {below} + 48]",
            "rep movsb",
            "mov rcx, [rsp + {below} + 24]",
            ".if {arguments} == 6",
            "mov rsi, [rsp + {below} + 8]",
            ".endif",
            "mov rdi, {in_place}",
        )
    };
}
pub(crate) use copy_input;

/// Has the input put back where the application has it.
macro_rules! put_input_back {
    () => {
        $crate::ground::arch::steps::lines!(
            "lea rdi, [rsp + {below}]",
            "lea rsi, [rsp + {below} + 48]",
            "mov rdx, [rsp + {home}]",
            "mov ecx, {keeps}",
            "mov r8d, {arguments} - 6",
            "call {copy}",
        )
    };
}
pub(crate) use put_input_back;

/// Calls the real function, with its own handles in the registers.
macro_rules! call_directly {
    () => {
        $crate::ground::arch::steps::lines!(
            "movabs rax, qword ptr [{direct}]",
            $crate::ground::arch::steps::each_handle!(real_handle),
            $crate::ground::arch::steps::communicator!(real_handle),
            "call qword ptr [rax + {slot}]",
            "8:",
        )
    };
}
pub(crate) use call_directly;

/// Takes the increment back, of the communicator in rdi. The agent has not read some operations because the thread was about to be inside: the thread tells of
/// these before it may be stopped. The log's values are read before that.
macro_rules! take_increment_back {
    () => {
        $crate::ground::arch::steps::lines!(
            ".if {noted}",
            "mov rax, [rdi + {counts}]",
            "movzx r10d, byte ptr [rax + {seq}]",
            "mov esi, dword ptr [rax + r10 * 4 + {log_counts}]",
            "mov ecx, dword ptr [rax + r10 * 4 + {log_roots}]",
            "push rsi",
            ".cfi_adjust_cfa_offset 8",
            "push rcx",
            ".cfi_adjust_cfa_offset 8",
            "call {returned}",
            "pop rcx",
            ".cfi_adjust_cfa_offset -8",
            "pop rsi",
            ".cfi_adjust_cfa_offset -8",
            ".else",
            "call {returned}",
            ".endif",
        )
    };
}
pub(crate) use take_increment_back;
