//! The room that each thread's static thread-local storage leaves to the lower half.

use crate::arch;

/// The size of the room. It must cover the places, seen from FS, at which the lower half's executable and libraries keep theirs: from some 4 KiB below FS, and
/// the storage that its libc keeps for libraries that are loaded later.
pub const BYTES: usize = 8 * 1024;

/// Tells the start and the size of the calling thread's room.
///
/// Only the program's own namespace has this library. So an MPI that a program loads into another one (`dlmopen`) lacks this function and is not loaded.
#[unsafe(no_mangle)]
pub extern "C" fn stillpoint_room(start: &mut u64, bytes: &mut u64) {
    *start = arch::start_of_room() as u64;
    *bytes = BYTES as u64;
}
