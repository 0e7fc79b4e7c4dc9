//! Numbers that the process and its threads have set for themselves.

use stillpoint_faults::Point;
use stillpoint_part::{Done, Failure, Kind, Part, Payload, Saved};
use stillpoint_refusals::{Refusal, refusal};

use super::{at, put};
use crate::capture::attributes::{self, KIND};
use crate::capture::stopped_process::Still;
use crate::restore;
use crate::restore::back::Back;

pub struct Attributes;

impl Part<Still<'_>, Back> for Attributes {
    fn name(&self) -> &'static str {
        "attributes"
    }

    fn kinds(&self) -> &'static [Kind] {
        &[KIND]
    }

    fn remember(&self) {
        attributes::remember();
    }

    fn capture(&self, still: &Still<'_>, payloads: &mut Vec<Payload>) -> Done {
        at(Point::CaptureAttributes)?;
        let _inside = still.enter()?;
        // SAFETY: the threads are stopped as long as the access is not revoked (`Still::new`), and a revocation waits for this thread, which is inside.
        let found = unsafe { attributes::survey(&still.main_first()?) };
        let found = found.ok_or_else(|| {
            Failure::Refused(refusal!(NoAnswer, "a stopped thread does not answer"))
        })?;
        put(payloads, KIND, &found)
    }

    fn check(&self, saved: &dyn Saved, reasons: &mut Vec<Refusal>) {
        reasons.extend(restore::read::<attributes::Saved>(saved, &KIND).err());
    }

    fn finish(&self, back: &mut Back) -> Done {
        let saved: attributes::Saved = restore::read(&back.restore, &KIND)?;
        let lost = restore::attributes::give_process(&saved);
        restore::attributes::tell(&lost, back);
        Ok(())
    }
}
