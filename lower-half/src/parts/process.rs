//! The process's own state: working directory, masks, interval timers.

use stillpoint_faults::{Point, pass};
use stillpoint_part::{Done, Kind, Part, Payload, Saved};
use stillpoint_refusals::Refusal;

use super::at;
use crate::capture::CaptureError;
use crate::capture::process::{self, KIND, ProcessState};
use crate::capture::stopped_process::Still;
use crate::restore::back::Back;
use crate::restore::rehearsal;

pub struct Process;

impl Part<Still<'_>, Back> for Process {
    fn name(&self) -> &'static str {
        "process state"
    }

    fn kinds(&self) -> &'static [Kind] {
        &[KIND]
    }

    fn remember(&self) {
        process::remember();
    }

    fn hinders(&self, still: &Still<'_>, reasons: &mut Vec<Refusal>) -> Done {
        let _inside = still.enter()?;
        reasons.extend(rehearsal::of_places());
        Ok(())
    }

    fn capture(&self, still: &Still<'_>, payloads: &mut Vec<Payload>) -> Done {
        at(Point::CaptureProcess)?;
        let _inside = still.enter()?;
        let mut state = process::survey().map_err(CaptureError::process("process state"))?;
        state.agree_with(still.waiting()?);
        payloads.push(Payload {
            kind: KIND,
            bytes: state.to_bytes(),
        });
        Ok(())
    }

    fn check(&self, saved: &dyn Saved, reasons: &mut Vec<Refusal>) {
        let state = ProcessState::from_bytes(saved.payload(&KIND).unwrap_or_default());
        reasons.extend(state.and_then(|state| state.check()).err());
    }

    fn resume(&self, back: &mut Back) -> Done {
        at(Point::RestartProcess)?;
        back.process()?.restore()?;
        Ok(())
    }

    fn finish(&self, back: &mut Back) -> Done {
        pass(Point::RestartClocks);
        back.process()?.restore_clocks();
        Ok(())
    }
}
