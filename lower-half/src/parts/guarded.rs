//! Pages that nothing may touch.

use stillpoint_part::{Done, Kind, Part, Payload, Saved};
use stillpoint_refusals::{Code, Refusal, refusal};

use super::put;
use crate::capture::guarded::{self, Guarded, KIND};
use crate::capture::stopped_process::Still;
use crate::restore;
use crate::restore::back::Back;

pub struct GuardedMemory;

impl Part<Still<'_>, Back> for GuardedMemory {
    fn name(&self) -> &'static str {
        "guarded memory"
    }

    fn kinds(&self) -> &'static [Kind] {
        &[KIND]
    }

    fn hinders(&self, still: &Still<'_>, reasons: &mut Vec<Refusal>) -> Done {
        let _inside = still.enter()?;
        reasons.extend(guarded::hinders());
        Ok(())
    }

    fn capture(&self, still: &Still<'_>, payloads: &mut Vec<Payload>) -> Done {
        let _inside = still.enter()?;
        let guards = guarded::survey(still.mappings()?);
        let guards = guards.map_err(|error| {
            Refusal::new(Code::of(&error, Code::GuardedPages), error.to_string())
        })?;
        let ranges: Vec<_> = guards.iter().map(|it| (it.start, it.end)).collect();
        match ranges.is_empty() {
            true => Ok(()),
            false => put(payloads, KIND, &Guarded { ranges }),
        }
    }

    fn check(&self, saved: &dyn Saved, reasons: &mut Vec<Refusal>) {
        match restore::read_if_there::<Guarded>(saved, &KIND) {
            Ok(None) => {}
            Ok(Some(_)) => reasons.extend(guarded::lacks().map(|why| {
                refusal!(KernelFeature, "the job has guarded pages (MADV_GUARD_INSTALL), which this kernel does not have ({why}): restart it on Linux 6.13 or later")
            })),
            Err(reason) => reasons.push(reason),
        }
    }

    fn finish(&self, back: &mut Back) -> Done {
        let guarded: Option<Guarded> = restore::read_if_there(&back.restore, &KIND)?;
        Ok(guarded.map_or(Ok(()), |guarded| guarded.restore())?)
    }
}
