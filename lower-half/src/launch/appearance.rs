//! The process looks like the application: name, arguments, environment as `ps` and `/proc` show them.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::capture::told;
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
        // SAFETY: prctl copies at most 16 bytes of a string that ends in NUL.
        unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
    }
}

/// Names the calling thread as it was named.
pub fn restore_name(name: &[u8; 16]) {
    let mut name = *name;
    name[15] = 0;
    // SAFETY: prctl copies at most 16 bytes of a string that ends in NUL.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// Shows the application's arguments and environment for the loader's. Where the kernel refuses, the loader's
/// stay: nothing but the looks depends on it.
pub fn show_arguments(stack: &Stack) {
    let Some(places) = places() else { return };
    let map = MemoryMap {
        places,
        strings: [
            stack.arguments.0,
            stack.arguments.1,
            stack.environment.0,
            stack.environment.1,
        ]
        .map(|at| at as u64),
        auxiliary: 0,
        auxiliary_bytes: 0,
        executable: u32::MAX,
    };
    // SAFETY: the kernel reads the structure and checks every address in it.
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

/// The process's own places, from `/proc/self/stat`.
fn places() -> Option<[u64; 7]> {
    let stat = told::by("/proc/self/stat").ok()?;
    // Fields are counted from the one behind the name, which is number 3.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    // SAFETY: sbrk(0) only tells.
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
