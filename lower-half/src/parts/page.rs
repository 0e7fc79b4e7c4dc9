//! The parts of the gate page that a restart brings back, and the application's name, arguments and environment, as `/proc` shows them.

use std::sync::atomic::Ordering;

use stillpoint_part::{Done, Kind, Part, Payload, Saved};
use stillpoint_refusals::Refusal;

use super::put;
use crate::capture::appearance;
use crate::capture::page::PageState;
use crate::capture::stopped_process::Still;
use crate::restore;
use crate::restore::back::Back;

pub struct Page;

const KIND: Kind = Kind {
    name: "gate page",
    version: 2,
    always: true,
};

impl Part<Still<'_>, Back> for Page {
    fn name(&self) -> &'static str {
        "the gate page"
    }

    fn kinds(&self) -> &'static [Kind] {
        &[KIND]
    }

    fn capture(&self, still: &Still<'_>, payloads: &mut Vec<Payload>) -> Done {
        let _inside = still.enter()?;
        put(payloads, KIND, &PageState::survey())
    }

    fn check(&self, saved: &dyn Saved, reasons: &mut Vec<Refusal>) {
        reasons.extend(restore::read::<PageState>(saved, &KIND).err());
    }

    fn open(&self, back: &mut Back) -> Done {
        let state: PageState = restore::read(&back.restore, &KIND)?;
        let page = back.page;
        page.hooks.store(state.hooks, Ordering::Release);
        page.mpi_active.store(state.mpi_active, Ordering::Release);
        page.sent_before.store(state.sent_before, Ordering::Relaxed);
        page.received_before
            .store(state.received_before, Ordering::Relaxed);
        Ok(())
    }

    fn rebuild(&self, back: &mut Back) -> Done {
        let state: PageState = restore::read(&back.restore, &KIND)?;
        appearance::restore_name(&back.main.record.name);
        if state.strings[0] != 0 {
            appearance::show_again(state.strings, state.vector);
        }
        Ok(())
    }
}
