//! The process's limits, which may hinder the rest of the lower half's work. They are part of the process's state.

use stillpoint_faults::{Point, pass};
use stillpoint_part::{Done, Part};

use crate::capture::stopped_process::Still;
use crate::restore::back::Back;

pub struct Limits;

impl Part<Still<'_>, Back> for Limits {
    fn name(&self) -> &'static str {
        "limits"
    }

    fn finish(&self, back: &mut Back) -> Done {
        pass(Point::RestartLimits);
        for what in back.process()?.restore_limits() {
            back.say(&what);
        }
        Ok(())
    }
}
