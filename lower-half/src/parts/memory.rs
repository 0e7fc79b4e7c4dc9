//! Memory: the reasons why some of it cannot be carried, and its way back to its old addresses. Its pages are an image's own section
//! (`capture::memory`), not a payload.

use stillpoint_part::{Done, Kind, Part};
use stillpoint_refusals::{Refusal, refusal};

use crate::capture::account;
use crate::capture::maps::Mapping;
use crate::capture::stopped_process::Still;
use crate::capture::unmovable;
use crate::capture::window_memory::Below;
use crate::gpu::{held, traces};
use crate::ground::free;
use crate::restore::back::Back;
use crate::restore::rehearsal;

pub struct Memory;

impl Part<Still<'_>, Back> for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    /// The bytes written in each region, which a restart does not need.
    fn kinds(&self) -> &'static [Kind] {
        &[account::KIND]
    }

    fn hinders(&self, still: &Still<'_>, reasons: &mut Vec<Refusal>) -> Done {
        if let Some(left) = free::too_little() {
            reasons.push(refusal!(
                NoRoom,
                "its control group has {left} bytes of memory left for it, and a checkpoint takes up to 6 MiB"
            ));
            return Ok(());
        }
        let inside = still.enter()?;
        let mappings = still.mappings_by_now();
        drop(inside);
        let mappings = match mappings {
            Ok(mappings) => mappings,
            Err(error) => {
                reasons.push(refusal!(
                    UnreadableMemory,
                    "its memory map cannot be read: {error}"
                ));
                return Ok(());
            }
        };
        // Mappings of a GPU's driver are gone before memory is surveyed for an image.
        let goes = |it: &Mapping| held::is_locked() && traces::is_file(it.path());
        let mappings: Vec<Mapping> = mappings.into_iter().filter(|it| !goes(it)).collect();
        let inside = still.enter()?;
        reasons.extend(rehearsal::of_memory(&mappings));
        let below = Below::survey(&mappings);
        drop(inside);
        let below = match below {
            Ok(below) => below,
            Err(error) => {
                reasons.push(refusal!(
                    UnreadableMemory,
                    "its memory map cannot be read: {error}"
                ));
                return Ok(());
            }
        };
        for one in &mappings {
            let _inside = still.enter()?;
            reasons.extend(unmovable::mapping(one, &below));
        }
        Ok(())
    }

    fn map(&self, back: &mut Back) -> Done {
        // SAFETY: no application runs in a process that is coming back, so the upper half's addresses are free.
        unsafe { back.restore.map(back.lost) }.map_err(Refusal::from)?;
        Ok(())
    }
}
