//! Tells which pending signals belong to the launch, not to the application's state: signals by which people ask something of the running
//! job.
//!
//! While a process stands still for its checkpoint, signals wait that would otherwise have met their default action at once. They
//! ask for the suspend that is under way (`--suspend-signal`, `--on-term suspend`), or are meant to end this launch. In an image,
//! they would act on every launch that is restarted from there. Signals that the application handles, ignores or blocks belong to
//! it, and so do those that it has sent to itself.

use super::signals::{Pending, Waiting};
use crate::arch::frame::Frame;
use crate::gate::{identity, signals};

/// The facts that decide about one signal number in one process.
#[derive(Clone, Copy)]
struct Number {
    /// Some thread that it may come to does not block it.
    open: bool,
    /// The application leaves it at its default.
    default: bool,
    /// Stillpoint takes it for a request to suspend.
    asks: bool,
}

fn is_launchs(number: Number, sent_from_outside: bool) -> bool {
    number.open && number.default && (number.asks || sent_from_outside)
}

/// Returns whether a pending signal belongs to the launch. `blocked` are the signals that every thread blocks which could take them.
fn belongs(pending: &Pending, blocked: u64) -> bool {
    let signal = pending.signal;
    let number = Number {
        open: blocked & signals::bit(signal) == 0,
        default: signals::leaves_at_default(signal),
        asks: signals::asks_for_suspend(signal),
    };
    let sender = pending.sender();
    is_launchs(
        number,
        sender.is_some_and(|id| id != identity::virtual_pid()),
    )
}

/// Returns the application's signal masks from its stopped threads' frames: each thread's id, with the signals that it blocks.
///
/// # Safety
/// Whole signal frames must lie at these addresses, except for those that are 0.
pub unsafe fn masks(frames: impl Iterator<Item = (u32, usize)>) -> Vec<(u32, u64)> {
    frames
        .map(|(tid, frame)| {
            // A thread that does not stand in a frame takes no signals.
            // SAFETY: the caller says that a whole signal frame lies at each address that is not 0.
            let blocked = (frame != 0).then(|| unsafe { Frame::at(frame).mask() });
            (tid, blocked.unwrap_or(u64::MAX))
        })
        .collect()
}

impl Waiting {
    /// Removes the signals that belong to the launch.
    pub fn leave_out_launchs(&mut self, masks: &[(u32, u64)]) {
        let by_all = masks.iter().fold(u64::MAX, |all, (_, mask)| all & mask);
        self.process.retain(|pending| !belongs(pending, by_all));
        for (tid, own) in &mut self.threads {
            let mask = masks.iter().find(|(of, _)| of == tid);
            let blocked = mask.map_or(u64::MAX, |(_, mask)| *mask);
            own.retain(|pending| !belongs(pending, blocked));
        }
        self.threads.retain(|(_, own)| !own.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_application_handles_blocks_or_sends_itself_is_its_own() {
        let number = |open, default, asks| Number {
            open,
            default,
            asks,
        };
        for outside in [false, true] {
            for asks in [false, true] {
                assert!(!is_launchs(number(false, true, asks), outside), "blocked");
                assert!(!is_launchs(number(true, false, asks), outside), "handled");
            }
            assert!(is_launchs(number(true, true, true), outside), "a request");
        }
        assert!(is_launchs(number(true, true, false), true), "an end");
        assert!(!is_launchs(number(true, true, false), false), "its own");
    }
}
