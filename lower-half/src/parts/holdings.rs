//! State that the application holds in the kernel and that cannot be seen afterwards: it is counted when it is made, and refused.

use stillpoint_part::{Done, Part};
use stillpoint_refusals::Refusal;

use crate::capture::stopped_process::Still;
use crate::gate::holdings;
use crate::restore::back::Back;

pub struct Holdings;

impl Part<Still<'_>, Back> for Holdings {
    fn name(&self) -> &'static str {
        "state that cannot be seen"
    }

    fn hinders(&self, still: &Still<'_>, reasons: &mut Vec<Refusal>) -> Done {
        let _inside = still.enter()?;
        reasons.extend(holdings::refusals());
        Ok(())
    }
}
