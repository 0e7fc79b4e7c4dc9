//! The functions that programs call.

mod checkpoint;
mod context;
mod copy;
mod device;
mod entry;
mod error;
mod event;
mod graph;
mod managed;
mod mapping;
mod memory;
mod module;
mod multicast;
mod pointer;
mod settings;
mod sharing;
mod stream;

/// Writes a result to the program's place for it.
///
/// # Safety
/// The place is null or the program's own, and has room.
unsafe fn give<T>(place: *mut T, value: T) -> Result<(), crate::code::Code> {
    if place.is_null() {
        return Err(crate::code::INVALID_VALUE);
    }
    // SAFETY: as the caller says.
    unsafe { place.write_unaligned(value) };
    Ok(())
}
