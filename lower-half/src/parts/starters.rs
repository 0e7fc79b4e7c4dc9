//! The processes that have started the program and wait for it: they are not carried, and a restart says so.

use stillpoint_part::{Done, Kind, Part, Payload, Saved};
use stillpoint_refusals::Refusal;

use super::put;
use crate::capture::stopped_process::Still;
use crate::ground::starters::{self, KIND, Starter};
use crate::restore;
use crate::restore::back::Back;

pub struct Starters;

impl Part<Still<'_>, Back> for Starters {
    fn name(&self) -> &'static str {
        "what has started the program"
    }

    fn kinds(&self) -> &'static [Kind] {
        &[KIND]
    }

    fn capture(&self, still: &Still<'_>, payloads: &mut Vec<Payload>) -> Done {
        let _inside = still.enter()?;
        let starters = starters::all();
        if starters.is_empty() {
            return Ok(());
        }
        put(payloads, KIND, &starters)
    }

    fn check(&self, saved: &dyn Saved, reasons: &mut Vec<Refusal>) {
        reasons.extend(restore::read_if_there::<Vec<Starter>>(saved, &KIND).err());
    }

    fn finish(&self, back: &mut Back) -> Done {
        let starters: Option<Vec<Starter>> = restore::read_if_there(&back.restore, &KIND)?;
        if let Some(text) = starters::at_restart(&starters.unwrap_or_default()) {
            back.say(&text);
        }
        Ok(())
    }
}
