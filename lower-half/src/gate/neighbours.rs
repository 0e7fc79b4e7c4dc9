//! The job's other ranks that had their ids on this rank's host when the job began: the application may know these ids, and has no others to know them by.
//!
//! Rules of this place: what is asked here is asked in the trap's handler. Nothing is changed once the application runs.

use std::sync::OnceLock;

use stillpoint_protocol::agent::{KnownAs, Neighbour};
use stillpoint_protocol::namespace::Namespace;

/// Where this process got the id that the application knows.
static BORN: OnceLock<Namespace> = OnceLock::new();

/// Those that the kernel calls otherwise, or that are elsewhere now.
static OTHERS: OnceLock<Vec<Other>> = OnceLock::new();

/// No process has this id: one that is on another host is natively not there.
const NOBODY: u32 = i32::MAX as u32;

struct Other {
    known: u32,
    real: u32,
}

fn others() -> impl Iterator<Item = &'static Other> {
    OTHERS.get().into_iter().flatten()
}

/// The kernel's id for one that the application knows.
pub fn real(known: u32) -> Option<u32> {
    others().find(|it| it.known == known).map(|it| it.real)
}

/// Returns the id by which the application knows the rank with this kernel id.
pub fn known(real: u32) -> Option<u32> {
    let other = others().find(|it| it.real == real && real != NOBODY);
    other.map(|it| it.known)
}

/// The content of an image: the namespace that the application's ids are of.
pub fn save() -> Vec<u8> {
    let born = BORN.get_or_init(Namespace::here);
    serde_json::to_vec(born).unwrap_or_default()
}

/// Takes up what [`save`] gave, in another launch, and says as what the application knows this rank: the others are to be told.
pub fn restore(pid: u32, saved: &[u8]) -> KnownAs {
    let born = serde_json::from_slice(saved).unwrap_or_default();
    KnownAs {
        pid,
        born: *BORN.get_or_init(|| born),
    }
}

/// Notes what the others have told. Before the application runs.
pub fn note(told: &[Neighbour]) {
    let here = Namespace::here();
    let other = |it: &Neighbour| Other {
        known: it.known,
        real: match it.namespace.is_same(here) {
            true => it.pid,
            false => NOBODY,
        },
    };
    let all = told.iter().map(other).filter(|it| it.known != it.real);
    OTHERS.get_or_init(|| all.collect());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_keep_their_ids_and_those_on_other_hosts_are_nobody() {
        let here = Namespace::here();
        let there = Namespace::told_of(1, "another boot", "another machine");
        let told = |known, pid, namespace| Neighbour {
            known,
            pid,
            namespace,
        };
        note(&[
            told(10, 20, here),
            told(20, 10, here),
            told(30, 40, there),
            told(50, 50, here),
        ]);
        assert_eq!(
            [10, 20, 30, 50, 40].map(real),
            [Some(20), Some(10), Some(NOBODY), None, None]
        );
        assert_eq!(
            [10, 20, 40, 50, NOBODY].map(known),
            [Some(20), Some(10), None, None, None]
        );
        // SAFETY: the signal 0 is sent to nobody.
        let sent = unsafe { libc::kill(NOBODY as i32, 0) };
        let error = std::io::Error::last_os_error().raw_os_error();
        assert_eq!((sent, error), (-1, Some(libc::ESRCH)));
        let saved = save();
        assert_eq!(restore(7, &saved), KnownAs { pid: 7, born: here });
    }
}
