//! MPI's objects: the upper half makes them again. Its messages report what hinders a checkpoint while the job lives.

use std::sync::atomic::Ordering;

use stillpoint_faults::Point;
use stillpoint_part::{Done, Part};

use super::at;
use crate::capture::stopped_process::Still;
use crate::restore::back::Back;
use crate::restore::upper;

pub struct Objects;

impl Part<Still<'_>, Back> for Objects {
    fn name(&self) -> &'static str {
        "MPI objects"
    }

    fn rebuild(&self, back: &mut Back) -> Done {
        at(Point::RestartRebuild)?;
        let hooks = back.page.hooks.load(Ordering::Acquire);
        // SAFETY: this phase runs on the main thread, which is adopted, with the upper half's memory in place and MPI running.
        unsafe { upper::rebuild(hooks, back.main.record.thread_pointer) }?;
        Ok(())
    }
}
