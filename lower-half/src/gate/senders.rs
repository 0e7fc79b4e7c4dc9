//! The sender that a signal names.

use super::{identity, timers};

/// Translates ids in a signal's information: the sender's, if it is the process itself, its parent or another rank, and a timer's. A signal of `sigqueue` names
/// the sender that its caller has put there.
pub fn virtualise(info: *mut libc::siginfo_t) {
    // SAFETY: every caller is a signal handler and passes the kernel's structure, which is alive; for these codes the sender's id is its first field.
    unsafe {
        let by_user = matches!((*info).si_code, libc::SI_USER | libc::SI_TKILL);
        let sender = info.cast::<u32>().add(4);
        if by_user {
            *sender = identity::known_process(*sender);
        } else if (*info).si_code == libc::SI_QUEUE && *sender == identity::real_pid() {
            *sender = identity::virtual_pid();
        } else if (*info).si_code == libc::SI_TIMER {
            // The timer's id is in the same place.
            *sender = timers::known(*sender as i32) as u32;
        }
    }
}
