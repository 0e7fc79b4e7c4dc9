//! The credentials of the threads. A thread sets its own as its last act before it belongs to the application; this part does so for the
//! main thread.

use stillpoint_faults::Point;
use stillpoint_part::{Done, Failure, Kind, Part, Payload, Saved};
use stillpoint_refusals::{Refusal, refusal};

use super::{at, put};
use crate::capture::attributes;
use crate::capture::credentials::{self, KIND};
use crate::capture::stopped_process::Still;
use crate::restore;
use crate::restore::back::Back;

pub struct Credentials;

impl Part<Still<'_>, Back> for Credentials {
    fn name(&self) -> &'static str {
        "users and capabilities"
    }

    fn kinds(&self) -> &'static [Kind] {
        &[KIND]
    }

    fn capture(&self, still: &Still<'_>, payloads: &mut Vec<Payload>) -> Done {
        at(Point::CaptureCredentials)?;
        let _inside = still.enter()?;
        // SAFETY: the threads are stopped as long as the access is not revoked (`Still::new`), and a revocation waits for this thread, which is inside.
        let found = unsafe { credentials::survey(&still.main_first()?) };
        let found = found.ok_or_else(|| {
            Failure::Refused(refusal!(
                NoAnswer,
                "the kernel does not tell whose its threads are: try again"
            ))
        })?;
        put(payloads, KIND, &found)
    }

    fn check(&self, saved: &dyn Saved, reasons: &mut Vec<Refusal>) {
        let found = restore::read(saved, &KIND);
        let changes = found.and_then(|found| restore::credentials::changes(&found));
        reasons.extend(changes.err());
    }

    fn finish(&self, back: &mut Back) -> Done {
        at(Point::RestartCredentials)?;
        if let Some(change) = &back.main.credentials {
            change.make().map_err(restore::credentials::not_given)?;
        }
        // The kernel forgets some of these at a change of users.
        restore::attributes::give_thread(&back.main.attributes);
        if back.changes_users {
            let saved: attributes::Saved = restore::read(&back.restore, &attributes::KIND)?;
            restore::attributes::dumpable_again(&saved);
        }
        Ok(())
    }
}
