//! System V semaphores and message queues.

use stillpoint_faults::Point;
use stillpoint_part::{Done, Failure, Kind, Part, Payload, Saved};
use stillpoint_refusals::Refusal;

use super::{at, put};
use crate::capture::ipc::{self, KIND};
use crate::capture::stopped_process::Still;
use crate::restore;
use crate::restore::back::Back;

pub struct Ipc;

impl Part<Still<'_>, Back> for Ipc {
    fn name(&self) -> &'static str {
        "System V semaphores and message queues"
    }

    fn kinds(&self) -> &'static [Kind] {
        &[KIND]
    }

    fn hinders(&self, still: &Still<'_>, reasons: &mut Vec<Refusal>) -> Done {
        let _inside = still.enter()?;
        reasons.extend(ipc::undo());
        reasons.extend(ipc::survey().1);
        Ok(())
    }

    fn capture(&self, still: &Still<'_>, payloads: &mut Vec<Payload>) -> Done {
        at(Point::CaptureIpc)?;
        let _inside = still.enter()?;
        let (found, reasons) = ipc::survey();
        if !reasons.is_empty() {
            return Err(Failure::Refused(Refusal::together(reasons)));
        }
        if found == ipc::Saved::default() {
            return Ok(());
        }
        put(payloads, KIND, &found)
    }

    fn check(&self, saved: &dyn Saved, reasons: &mut Vec<Refusal>) {
        match restore::read_if_there(saved, &KIND) {
            Ok(found) => reasons.extend(restore::ipc::missing(&found.unwrap_or_default())),
            Err(reason) => reasons.push(reason),
        }
    }

    fn open(&self, back: &mut Back) -> Done {
        at(Point::RestartIpc)?;
        if let Some(saved) = restore::read_if_there(&back.restore, &KIND)? {
            restore::ipc::give(&saved).map_err(Refusal::from)?;
        }
        Ok(())
    }
}
