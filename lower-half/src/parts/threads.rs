//! Threads. What is known of them is an image's own section (`capture::records`), not a payload; a restart makes them again between its
//! phases *rebuild* and *resume* (`restore::threads`).

use stillpoint_part::{Done, Part};

use crate::capture::still::Still;
use crate::restore::back::Back;
use crate::restore::rehearsal;

pub struct Threads;

impl Part<Still<'_>, Back> for Threads {
    fn name(&self) -> &'static str {
        "threads"
    }

    fn hinders(&self, still: &Still<'_>, reasons: &mut Vec<String>) -> Done {
        let _inside = still.enter()?;
        reasons.extend(rehearsal::of_threads());
        Ok(())
    }
}
