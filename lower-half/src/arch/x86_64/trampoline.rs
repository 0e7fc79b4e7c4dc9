//! Small functions that are made at run time: they add a fifth argument to a call.

/// The size of one function.
pub const BYTES: usize = 32;
/// The offset of the argument in it.
#[cfg(test)]
pub const ARGUMENT_AT: usize = 2;

/// Returns the code of a function that calls `function` with its own four arguments and `argument` as the fifth.
pub fn code(function: usize, argument: u64) -> [u8; BYTES] {
    // mov r8, argument; mov rax, function; jmp rax
    let mut code = [0xccu8; BYTES];
    code[0..2].copy_from_slice(&[0x49, 0xb8]);
    code[2..10].copy_from_slice(&argument.to_le_bytes());
    code[10..12].copy_from_slice(&[0x48, 0xb8]);
    code[12..20].copy_from_slice(&(function as u64).to_le_bytes());
    code[20..22].copy_from_slice(&[0xff, 0xe0]);
    code
}
