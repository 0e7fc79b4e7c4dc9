//! The stack that a program begins on: arguments, environment and auxiliary vector, in the kernel's layout.
//!
//! ```text
//!   high   path of the executable, environment strings, argument strings, platform, 16 random bytes
//!          auxiliary vector (type, value) ... AT_NULL
//!          environment pointers ... 0                  (the last two are taken away before the program begins)
//!          argument pointers ... 0
//!   low    argument count                              <- stack pointer, a multiple of 16
//! ```
//!
//! It grows like the kernel's own stacks (`MAP_GROWSDOWN`): on access, as far as the soft limit permits at that moment. The range below it is kept free, so a
//! limit that is raised at run time, even to unlimited, needs no reservation.

use std::ffi::CString;
use std::io;

use super::map::Mapped;
use crate::arch::layout::{STACK_MOST, STACK_TOP};
use crate::arch::syscall::failed;
use crate::arch::{self, PAGE};
use crate::gate::memory;
use crate::ground::environment::Environment;

/// `linux/auxvec.h`: the size of a signal frame at least.
const AT_MINSIGSTKSZ: u64 = 51;
/// The gate refuses restartable sequences, so their sizes are left out.
const LEFT_OUT: [u64; 2] = [27, 28];

/// The stack, with the places of its strings.
#[derive(Clone, Copy, Debug)]
pub struct Stack {
    /// The initial stack pointer.
    pub pointer: usize,
    pub arguments: (usize, usize),
    pub environment: (usize, usize),
    pub auxiliary: (usize, usize),
}

struct Writer {
    at: usize,
}

impl Writer {
    /// Puts bytes below everything so far.
    fn put(&mut self, bytes: &[u8]) -> usize {
        self.at -= bytes.len();
        // SAFETY: the stack is mapped and writable, and `build` has checked that everything fits above its lower end.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.at as *mut u8, bytes.len()) };
        self.at
    }

    /// Puts strings one after the other, in the order of the list.
    fn strings(&mut self, strings: &[CString]) -> (Vec<u64>, (usize, usize)) {
        let end = self.at;
        let mut places: Vec<u64> = strings
            .iter()
            .rev()
            .map(|string| self.put(string.as_bytes_with_nul()) as u64)
            .collect();
        places.reverse();
        (places, (self.at, end))
    }
}

/// Bytes of a new stack that the kernel provides beyond its contents.
const SPARE: usize = 128 * 1024;

/// Returns the limit on the stack, within reason.
fn limit() -> usize {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: getrlimit fills the structure, which lives on this stack.
    unsafe { libc::getrlimit(libc::RLIMIT_STACK, &mut limit) };
    (limit.rlim_cur as usize).clamp(1 << 20, STACK_MOST)
}

/// Maps the stack and lays everything out on it.
///
/// # Errors
/// `E2BIG` if arguments and environment leave too little of the stack, or the kernel's error for the mapping.
pub fn build(
    program: &Mapped,
    interpreter: &Mapped,
    path: &CString,
    arguments: &[CString],
    environment: &Environment,
    vdso: usize,
) -> io::Result<Stack> {
    let strings = arguments
        .iter()
        .chain(&environment.variables)
        .chain(&environment.of_loader)
        .map(|string| string.as_bytes_with_nul().len() + 8);
    let filled = strings.sum::<usize>() + 16 * 1024;
    if filled > limit() / 2 {
        return Err(io::Error::from_raw_os_error(libc::E2BIG));
    }
    let bytes = (filled + SPARE).next_multiple_of(PAGE);
    let executable = if program.executable_stack {
        libc::PROT_EXEC
    } else {
        0
    };
    let protection = (libc::PROT_READ | libc::PROT_WRITE | executable) as usize;
    let flags = libc::MAP_PRIVATE
        | libc::MAP_ANONYMOUS
        | libc::MAP_GROWSDOWN
        | libc::MAP_STACK
        | libc::MAP_FIXED_NOREPLACE;
    let mapped = memory::mmap(
        STACK_TOP - bytes,
        bytes,
        protection,
        flags as usize,
        usize::MAX,
        0,
    );
    if failed(mapped) {
        return Err(io::Error::from_raw_os_error(-mapped as i32));
    }

    let mut writer = Writer { at: STACK_TOP - 8 };
    let path = writer.put(path.as_bytes_with_nul());
    // Variables for the loader only lie outside of the range that `/proc` shows.
    let (of_loader, _) = writer.strings(&environment.of_loader);
    let (variables, variable_bytes) = writer.strings(&environment.variables);
    let (arguments, argument_bytes) = writer.strings(arguments);
    let platform = writer.put(arch::PLATFORM);
    let mut random = [0u8; 16];
    // SAFETY: getrandom writes at most as many bytes as the array has.
    unsafe { libc::getrandom(random.as_mut_ptr().cast(), random.len(), 0) };
    let random = writer.put(&random);

    let auxiliary: Vec<u64> = auxiliary(program, interpreter, path, platform, random, vdso);
    let mut words = vec![arguments.len() as u64];
    words.extend(&arguments);
    words.push(0);
    words.extend(&variables);
    words.extend(&of_loader);
    words.push(0);
    let before = words.len();
    words.extend(&auxiliary);
    let pointer = (writer.at - words.len() * 8) & !15;
    // SAFETY: the stack is mapped and writable down to SPARE bytes below all that `build` has counted, and the words fit.
    unsafe { std::ptr::copy_nonoverlapping(words.as_ptr(), pointer as *mut u64, words.len()) };
    Ok(Stack {
        pointer,
        arguments: argument_bytes,
        environment: variable_bytes,
        auxiliary: (pointer + before * 8, pointer + words.len() * 8),
    })
}

/// Builds the application's auxiliary vector from this process's own.
fn auxiliary(
    program: &Mapped,
    interpreter: &Mapped,
    path: usize,
    platform: usize,
    random: usize,
    vdso: usize,
) -> Vec<u64> {
    let own = std::fs::read("/proc/self/auxv").unwrap_or_default();
    let (words, _) = own.as_chunks::<8>();
    let words: Vec<u64> = words.iter().map(|word| u64::from_ne_bytes(*word)).collect();
    let ours = [
        (libc::AT_SYSINFO_EHDR, vdso),
        (libc::AT_PHDR, program.segments),
        (libc::AT_PHENT, size_of::<libc::Elf64_Phdr>()),
        (libc::AT_PHNUM, program.segment_count),
        (libc::AT_BASE, interpreter.base),
        (libc::AT_ENTRY, program.entry),
        (libc::AT_EXECFN, path),
        (libc::AT_PLATFORM, platform),
        (libc::AT_RANDOM, random),
        (libc::AT_SECURE, 0),
    ];
    let mut vector = vec![];
    for pair in words.chunks_exact(2) {
        let kind = pair[0];
        let known =
            kind != libc::AT_NULL && kind != libc::AT_BASE_PLATFORM && !LEFT_OUT.contains(&kind);
        if known && ours.iter().all(|(other, _)| *other != kind) {
            vector.extend([kind, pair[1]]);
        }
    }
    debug_assert!(vector.chunks_exact(2).all(|pair| pair[0] <= AT_MINSIGSTKSZ));
    for (kind, value) in ours {
        if kind != libc::AT_SYSINFO_EHDR || value != 0 {
            vector.extend([kind, value as u64]);
        }
    }
    vector.extend([libc::AT_NULL, 0]);
    vector
}
