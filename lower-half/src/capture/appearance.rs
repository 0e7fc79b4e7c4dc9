//! Makes the process look like the application: name, arguments, environment and auxiliary vector, as `ps` and `/proc` show them.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::ground::proc_files;
use crate::loader::stack::Stack;

const PR_SET_MM: i32 = 35;
const PR_SET_MM_MAP: i32 = 14;

/// `struct prctl_mm_map` of `linux/prctl.h`.
#[repr(C)]
struct MemoryMap {
    /// Code, data, break and stack: `start_code end_code start_data end_data start_brk brk start_stack`.
    places: [u64; 7],
    /// `arg_start arg_end env_start env_end`.
    strings: [u64; 4],
    auxiliary: u64,
    auxiliary_bytes: u32,
    executable: u32,
}

/// Names the calling thread after the program.
pub fn set_name(program: &Path) {
    let name = program.file_name().unwrap_or(program.as_os_str());
    if let Ok(name) = CString::new(name.as_bytes()) {
        // SAFETY: prctl reads at most 16 bytes of a string that ends in NUL.
        unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
    }
}

/// Gives the calling thread a saved name again.
pub fn restore_name(name: &[u8; 16]) {
    let mut name = *name;
    name[15] = 0;
    // SAFETY: prctl reads the 16 bytes of the name.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// The start and the end of the application's auxiliary vector, and the start of its stack, for the kernel to show.
static VECTOR: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];

/// Returns the values that an image must hold for [`show_again`].
pub fn vector() -> [u64; 3] {
    [0, 1, 2].map(|index| VECTOR[index].load(Ordering::Relaxed) as u64)
}

/// Shows the application's arguments, environment and auxiliary vector in place of the loader's.
pub fn show(stack: &Stack) {
    let (arguments, environment) = (stack.arguments, stack.environment);
    let strings = [arguments.0, arguments.1, environment.0, environment.1];
    let vector = [stack.auxiliary.0, stack.auxiliary.1, stack.pointer];
    show_again(strings.map(|at| at as u64), vector.map(|at| at as u64));
}

/// Does the same in another launch. If the kernel refuses, it goes on showing the loader's.
pub fn show_again(strings: [u64; 4], vector: [u64; 3]) {
    let Some(mut places) = places() else { return };
    for (place, value) in VECTOR.iter().zip(vector) {
        place.store(value as usize, Ordering::Relaxed);
    }
    let [start, end, stack] = vector;
    places[6] = stack;
    let map = MemoryMap {
        places,
        strings,
        auxiliary: start,
        auxiliary_bytes: end.saturating_sub(start) as u32,
        executable: u32::MAX,
    };
    // SAFETY: the kernel reads the structure, checks every address in it, and copies the vector.
    unsafe {
        libc::prctl(
            PR_SET_MM,
            PR_SET_MM_MAP,
            &raw const map,
            size_of::<MemoryMap>(),
            0,
        )
    };
}

/// Returns the process's own places, from `/proc/self/stat`.
fn places() -> Option<[u64; 7]> {
    let stat = proc_files::by("/proc/self/stat").ok()?;
    // The first field behind the name is number 3.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    // SAFETY: sbrk(0) changes nothing; it only returns the end of the data.
    let end = unsafe { libc::sbrk(0) } as u64;
    Some([
        field(26)?,
        field(27)?,
        field(45)?,
        field(46)?,
        field(47)?,
        end,
        field(28)?,
    ])
}
