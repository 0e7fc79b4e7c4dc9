//! The state that the kernel's schedulers keep for each thread.

use stillpoint_faults::{Point, pass};
use stillpoint_part::{Done, Kind, Part, Payload, Saved};
use stillpoint_refusals::Refusal;

use super::{at, put};
use crate::capture::scheduling::{self, KIND, Own};
use crate::capture::stopped_process::Still;
use crate::restore;
use crate::restore::back::Back;

pub struct Scheduling;

impl Part<Still<'_>, Back> for Scheduling {
    fn name(&self) -> &'static str {
        "scheduling"
    }

    fn kinds(&self) -> &'static [Kind] {
        &[KIND]
    }

    fn remember(&self) {
        scheduling::remember();
    }

    fn capture(&self, still: &Still<'_>, payloads: &mut Vec<Payload>) -> Done {
        at(Point::CaptureScheduling)?;
        let _inside = still.enter()?;
        put(payloads, KIND, &scheduling::survey(&still.threads()))
    }

    fn check(&self, saved: &dyn Saved, reasons: &mut Vec<Refusal>) {
        reasons.extend(restore::read::<Vec<Own>>(saved, &KIND).err());
    }

    fn finish(&self, back: &mut Back) -> Done {
        pass(Point::RestartScheduling);
        let own: Vec<Own> = restore::read(&back.restore, &KIND)?;
        restore::scheduling::give(&own, back);
        scheduling::are_given(own);
        Ok(())
    }
}
