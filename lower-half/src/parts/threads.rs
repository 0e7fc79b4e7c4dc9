//! Threads. Their records are an image's own section (`capture::records`), not a payload. A restart makes threads again between its phases
//! *rebuild* and *resume* (`restore::threads`).

use stillpoint_image::Thread as Record;
use stillpoint_part::{Done, Part};
use stillpoint_refusals::Refusal;

use crate::capture::scheduling::{self, Own};
use crate::capture::signals::{self, Waiting};
use crate::capture::stopped_process::Still;
use crate::capture::{attributes as numbers, credentials as whose};
use crate::restore::back::Back;
use crate::restore::threads::Returning;
use crate::restore::{self, Restore, attributes, credentials, rehearsal};

pub struct Threads;

impl Part<Still<'_>, Back> for Threads {
    fn name(&self) -> &'static str {
        "threads"
    }

    fn hinders(&self, still: &Still<'_>, reasons: &mut Vec<Refusal>) -> Done {
        let _inside = still.enter()?;
        reasons.extend(rehearsal::of_threads());
        Ok(())
    }
}

/// Returns the threads of the image, with the state that each sets for itself; the main one first.
pub fn returning(restore: &Restore) -> Result<Vec<Returning>, Refusal> {
    let own: Vec<Own> = restore::read(restore, &scheduling::KIND)?;
    let waiting: Waiting = restore::read(restore, &signals::KIND)?;
    let changes = credentials::changes(&restore::read(restore, &whose::KIND)?)?;
    let attributes: numbers::Saved = restore::read(restore, &numbers::KIND)?;
    let one = |record: &Record| {
        let tid = record.virtual_tid;
        let own = own.iter().find(|own| own.virtual_tid == tid);
        let change = changes.iter().find(|(of, _)| *of == tid);
        Returning {
            record: *record,
            credentials: change.map(|(_, change)| change.clone()),
            attributes: attributes::of_thread(&attributes, tid),
            pending: waiting.of_thread(tid).to_vec(),
            timer_slack: own.and_then(|own| own.timer_slack).unwrap_or(0),
        }
    };
    Ok(restore.threads().iter().map(one).collect())
}
