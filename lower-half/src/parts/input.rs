//! Standard input: its feeder holds still, and bytes that have been read from it travel.

use stillpoint_part::{Done, Failure, Kind, Part, Payload, Saved};
use stillpoint_refusals::Refusal;

use crate::capture::stopped_process::Still;
use crate::ground::input::{self, KIND};
use crate::restore::back::Back;

pub struct Input;

impl Part<Still<'_>, Back> for Input {
    fn name(&self) -> &'static str {
        "standard input"
    }

    fn kinds(&self) -> &'static [Kind] {
        &[KIND]
    }

    fn quiet(&self, given_up: &dyn Fn() -> bool) -> Done {
        input::hold(given_up).map_err(|reason| Failure::Hindered(vec![reason]))
    }

    fn capture(&self, still: &Still<'_>, payloads: &mut Vec<Payload>) -> Done {
        let _inside = still.enter()?;
        let bytes = input::save()?;
        payloads.extend(bytes.map(|bytes| Payload { kind: KIND, bytes }));
        Ok(())
    }

    fn release(&self) -> Result<(), String> {
        input::go();
        Ok(())
    }

    fn check(&self, saved: &dyn Saved, reasons: &mut Vec<Refusal>) {
        let Some(bytes) = saved.payload(&KIND) else {
            return;
        };
        let followed = input::Saved::from_bytes(bytes).and_then(|saved| input::follow(&saved));
        reasons.extend(followed.err());
    }
}
