//! MPI's messages and requests. The upper half finds everything in MPI that hinders a checkpoint in one go, its objects too, and this part
//! reports it.

use stillpoint_part::{Done, Part};
use stillpoint_refusals::Refusal;

use crate::capture::driver;
use crate::capture::stopped_process::Still;
use crate::restore::back::Back;

pub struct Messages;

impl Part<Still<'_>, Back> for Messages {
    fn name(&self) -> &'static str {
        "MPI messages"
    }

    fn hinders(&self, still: &Still<'_>, reasons: &mut Vec<Refusal>) -> Done {
        reasons.extend(driver::check(still)?);
        Ok(())
    }

    /// Messages that were under way to this rank lie in its upper half afterwards, which is memory.
    fn drain(&self, still: &Still<'_>) -> Done {
        driver::drain(still)
    }

    fn seal(&self, still: &Still<'_>) -> Done {
        driver::seal(still)
    }
}
