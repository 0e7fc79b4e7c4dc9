//! Memory that is locked.

use stillpoint_part::{Done, Kind, Part, Payload, Saved};
use stillpoint_refusals::Refusal;

use super::put;
use crate::capture::CaptureError;
use crate::capture::locked::{self, KIND, Locked};
use crate::capture::stopped_process::Still;
use crate::gate::memory;
use crate::restore;
use crate::restore::back::Back;

pub struct LockedMemory;

impl Part<Still<'_>, Back> for LockedMemory {
    fn name(&self) -> &'static str {
        "locked memory"
    }

    fn kinds(&self) -> &'static [Kind] {
        &[KIND]
    }

    fn capture(&self, still: &Still<'_>, payloads: &mut Vec<Payload>) -> Done {
        let _inside = still.enter()?;
        let locked = locked::survey(still.mappings()?);
        match locked.map_err(CaptureError::process("locked memory"))? {
            Some(locked) => put(payloads, KIND, &locked),
            None => Ok(()),
        }
    }

    fn check(&self, saved: &dyn Saved, reasons: &mut Vec<Refusal>) {
        reasons.extend(restore::read_if_there::<Locked>(saved, &KIND).err());
    }

    fn finish(&self, back: &mut Back) -> Done {
        let locked: Option<Locked> = restore::read_if_there(&back.restore, &KIND)?;
        let Some(locked) = locked else { return Ok(()) };
        let whole = locked.restore();
        // The agent listens already: a suspend that was asked for at once may have read the mappings before.
        memory::changed();
        if !whole {
            restore::attributes::tell(&["locked memory"], back);
        }
        Ok(())
    }
}
