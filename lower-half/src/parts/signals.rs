//! Pending signals. Threads other than the main one give back their own (`restore::threads`).

use stillpoint_faults::Point;
use stillpoint_part::{Done, Kind, Part, Payload, Saved};
use stillpoint_refusals::Refusal;

use super::{at, put};
use crate::capture::launch_signals;
use crate::capture::signals::{KIND, Waiting};
use crate::capture::stopped_process::Still;
use crate::restore;
use crate::restore::back::Back;

pub struct Signals;

impl Part<Still<'_>, Back> for Signals {
    fn name(&self) -> &'static str {
        "pending signals"
    }

    fn kinds(&self) -> &'static [Kind] {
        &[KIND]
    }

    fn capture(&self, still: &Still<'_>, payloads: &mut Vec<Payload>) -> Done {
        at(Point::CaptureSignals)?;
        let _inside = still.enter()?;
        put(payloads, KIND, still.waiting()?)
    }

    fn check(&self, saved: &dyn Saved, reasons: &mut Vec<Refusal>) {
        reasons.extend(restore::read::<Waiting>(saved, &KIND).err());
    }

    /// Gives back the signals; all threads block them until they return through their frames.
    fn finish(&self, back: &mut Back) -> Done {
        let mut waiting: Waiting = restore::read(&back.restore, &KIND)?;
        let threads = back.restore.threads().iter();
        let frames = threads.map(|thread| (thread.virtual_tid, thread.stop_frame as usize));
        // SAFETY: the image's memory is in place, and with it the frames that its threads return through; an address is 0 without one.
        waiting.leave_out_launchs(&unsafe { launch_signals::masks(frames) });
        for pending in &waiting.process {
            pending.restore(true);
        }
        for pending in waiting.of_thread(back.main.record.virtual_tid) {
            pending.restore(false);
        }
        Ok(())
    }
}
