//! MPI's messages and requests. What of MPI hinders a checkpoint, its objects too, the upper half finds out in one go, and says here.

use stillpoint_part::{Done, Part};

use crate::capture::driver;
use crate::capture::still::Still;
use crate::restore::back::Back;

pub struct Messages;

impl Part<Still<'_>, Back> for Messages {
    fn name(&self) -> &'static str {
        "MPI messages"
    }

    fn hinders(&self, still: &Still<'_>, reasons: &mut Vec<String>) -> Done {
        reasons.extend(driver::check(still)?);
        Ok(())
    }

    /// What was under way to this rank lies in its upper half afterwards, which is memory.
    fn drain(&self, still: &Still<'_>) -> Done {
        driver::drain(still)
    }

    fn seal(&self, still: &Still<'_>) -> Done {
        driver::seal(still)
    }
}
