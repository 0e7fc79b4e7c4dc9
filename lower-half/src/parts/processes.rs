//! Child processes: a checkpoint waits until no child is alive. Children that have ended and were not waited for are carried.

use stillpoint_part::{Done, Kind, Part, Payload, Saved};
use stillpoint_refusals::Refusal;

use super::put;
use crate::capture::children;
use crate::capture::stopped_process::Still;
use crate::ground::children::started;
use crate::ground::ended_children::{self, EndedChild, KIND};
use crate::restore;
use crate::restore::back::Back;

pub struct Processes;

impl Part<Still<'_>, Back> for Processes {
    fn name(&self) -> &'static str {
        "child processes"
    }

    fn kinds(&self) -> &'static [Kind] {
        &[KIND]
    }

    fn hinders(&self, still: &Still<'_>, reasons: &mut Vec<Refusal>) -> Done {
        let _inside = still.enter()?;
        reasons.extend(children::alive(&started()));
        Ok(())
    }

    fn capture(&self, still: &Still<'_>, payloads: &mut Vec<Payload>) -> Done {
        let _inside = still.enter()?;
        let ended = children::ended(&started());
        if ended.is_empty() {
            return Ok(());
        }
        put(payloads, KIND, &ended)
    }

    fn check(&self, saved: &dyn Saved, reasons: &mut Vec<Refusal>) {
        reasons.extend(restore::read_if_there::<Vec<EndedChild>>(saved, &KIND).err());
    }

    fn open(&self, back: &mut Back) -> Done {
        let ended: Option<Vec<EndedChild>> = restore::read_if_there(&back.restore, &KIND)?;
        ended_children::restore(&ended.unwrap_or_default())?;
        Ok(())
    }
}
