//! Descriptors and the files that they lead to. The open files are an image's own section (`capture::descriptors`), not a payload.

use stillpoint_faults::Point;
use stillpoint_part::{Done, Part};
use stillpoint_refusals::{Refusal, refusal};

use super::at;
use crate::capture::descriptors::{messages, streams};
use crate::capture::stopped_process::Still;
use crate::gate::descriptors::{self, unseen};
use crate::gpu::{held, traces};
use crate::restore::back::Back;
use crate::restore::rehearsal;

pub struct Descriptors;

impl Part<Still<'_>, Back> for Descriptors {
    fn name(&self) -> &'static str {
        "descriptors"
    }

    fn remember(&self) {
        streams::remember();
    }

    fn hinders(&self, still: &Still<'_>, reasons: &mut Vec<Refusal>) -> Done {
        let inside = still.enter()?;
        let mut numbers = descriptors::upper();
        if held::is_locked() {
            // Files that a GPU's driver has open are gone before an image is written.
            let go = traces::open_files();
            numbers.retain(|number| !go.iter().any(|(one, _)| one == number));
        }
        reasons.extend(unseen::doubtful().into_iter().map(|number| {
            let link = std::fs::read_link(format!("/proc/self/fd/{number}")).unwrap_or_default();
            refusal!(UnseenDescriptor, "descriptor {number} ({}) may have come to it unseen, by io_uring or fanotify: close it before a checkpoint",
                link.display()
            )
        }));
        reasons.extend(numbers.iter().filter_map(|number| messages::queue(*number)));
        drop(inside);
        let _inside = still.enter()?;
        reasons.extend(rehearsal::of_files(&numbers));
        Ok(())
    }

    fn open(&self, back: &mut Back) -> Done {
        // SAFETY: `map` has been called, and no application runs in a process that is coming back.
        unsafe { back.restore.files() }.map_err(Refusal::from)?;
        Ok(())
    }

    fn finish(&self, back: &mut Back) -> Done {
        at(Point::RestartFinish)?;
        let finished = back.restore.finish_descriptors();
        finished.map_err(Refusal::from)?;
        Ok(())
    }
}
