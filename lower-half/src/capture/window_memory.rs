//! Memory that the members of a window share (`MPI_Win_allocate_shared`).
//!
//! The library in the upper half makes it, and maps it anew in a restart. So an image has it as memory that nobody shares: one member's image with its bytes, the
//! others' with nothing but its place.

use stillpoint_wrappers::names::holder_of_window_memory;

use super::maps::Mapping;

/// The world rank of the member whose image holds the bytes, if the mapping is such memory.
pub fn of(mapping: &Mapping) -> Option<i32> {
    if !mapping.shared || !mapping.deleted() {
        return None;
    }
    holder_of_window_memory(mapping.path())
}
