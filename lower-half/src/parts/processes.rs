//! Child processes: a checkpoint waits until there are none.

use stillpoint_part::{Done, Part};

use crate::capture::children;
use crate::capture::still::Still;
use crate::ground::children::started;
use crate::restore::back::Back;

pub struct Processes;

impl Part<Still<'_>, Back> for Processes {
    fn name(&self) -> &'static str {
        "child processes"
    }

    fn hinders(&self, still: &Still<'_>, reasons: &mut Vec<String>) -> Done {
        let _inside = still.enter()?;
        reasons.extend(children::alive(&started()));
        Ok(())
    }
}
