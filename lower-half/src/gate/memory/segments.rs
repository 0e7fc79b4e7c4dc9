//! Places System V segments in the arena, like other memory.

use super::{ARENA, outside_ranges, pages, settled, unasked};
use crate::arch::PAGE;
use crate::arch::syscall::{failed, syscall3, syscall4};
use crate::gate::call::Call;

/// Answers `shmat`: attaches segments in the arena too, or where the application wants them.
pub fn on_shmat(call: &mut Call) -> isize {
    let [id, address, flags, ..] = call.arguments();
    // SAFETY: the application asks for this; the place is its own choice, which has been looked at, or was reserved in the arena.
    let attach = |address, flags| unsafe { syscall3(libc::SYS_shmat, id, address, flags) };
    let mut status = core::mem::MaybeUninit::<libc::shmid_ds>::zeroed();
    // SAFETY: IPC_STAT fills the structure, which lives on this stack.
    let result = unsafe {
        syscall4(
            libc::SYS_shmctl,
            id,
            libc::IPC_STAT as usize,
            status.as_mut_ptr() as usize,
            0,
        )
    };
    if failed(result) {
        return result;
    }
    // SAFETY: zeros are valid for every field, and the kernel has filled them.
    let bytes = unsafe { status.assume_init_ref() }.shm_segsz;
    if address != 0 {
        let rounds = flags & libc::SHM_RND as usize != 0;
        let start = if rounds {
            address & !(PAGE - 1)
        } else {
            address
        };
        return match pages(start, bytes) {
            Some(range) if !settled(&range) => {
                outside_ranges::attach(range, flags, || attach(address, flags))
            }
            _ => attach(address, flags),
        };
    }
    let mut arena = ARENA.lock();
    let place = arena.reserve(bytes, unasked(bytes));
    if failed(place) {
        return place;
    }
    let result = attach(place as usize, flags | libc::SHM_REMAP as usize);
    if failed(result) {
        // SAFETY: this unmaps exactly what was reserved above, which nothing uses.
        unsafe { syscall3(libc::SYS_munmap, place as usize, bytes, 0) };
    }
    result
}
