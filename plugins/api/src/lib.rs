//! The interface that every part of a checkpoint implements.
//!
//! A checkpoint is an ordered list of parts: memory, threads, file descriptors, MPI objects and so on. Each part reports what
//! hinders a checkpoint, has its turn in every phase, and writes down what a restart needs as payloads: kind, version, bytes. The
//! code that carries out a checkpoint or a restart knows the phases and the payloads, but not the parts.
//!
//! Every method except [`Part::name`] does nothing by default. In one phase the parts have their turns in the list's order.

#![forbid(unsafe_code)]

use stillpoint_refusals::{Refusal, refusal};

/// Why a part's turn has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The checkpoint has been given up meanwhile. The caller needs no reason.
    GivenUp,
    /// A hindrance appeared after the check, in the words that [`Part::hinders`] would have used.
    Hindered(Vec<Refusal>),
    /// The turn cannot succeed. The text tells people what failed and what to do.
    Refused(Refusal),
}

impl From<Refusal> for Failure {
    fn from(reason: Refusal) -> Failure {
        Failure::Refused(reason)
    }
}

/// The result of a turn.
pub type Done = Result<(), Failure>;

/// The kind of a payload: its name and the version of its form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// A name that is unique among all kinds and is never used again for something else.
    pub name: &'static str,
    /// A number that grows with every change of the bytes that an older reader would misread.
    pub version: u32,
    /// Whether every image has one.
    pub always: bool,
}

/// A payload that a part has written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    pub kind: Kind,
    pub bytes: Vec<u8>,
}

/// The contents of an image, for a restart to read.
pub trait Saved {
    /// Returns the bytes of a kind, or `None` if the image has none.
    fn payload(&self, kind: &Kind) -> Option<&[u8]>;
}

/// One part of a checkpoint. `Still` is a stopped process, `Back` is a process that is being restarted.
pub trait Part<Still: ?Sized, Back: ?Sized>: Sync {
    /// Returns the part's name, as messages show it.
    fn name(&self) -> &'static str;

    /// Returns the kinds of payload that the part writes. It reads only these.
    fn kinds(&self) -> &'static [Kind] {
        &[]
    }

    /// Runs before the application's first instruction, in every launch. The part notes what belongs to this launch.
    fn remember(&self) {}

    /// **Quiet**: every thread is parked, and no part has looked at anything yet. Helpers that work for the application outside its process come
    /// to rest, until [`Part::release`]. This is the only turn in which threads may run for a while; they stand still again when it ends well.
    /// `release` may come at any time and must see what this turn has begun, so the turn begins nothing once the checkpoint is given up.
    fn quiet(&self, given_up: &dyn Fn() -> bool) -> Done {
        let _ = given_up;
        Ok(())
    }

    /// **Check**: adds every reason why there can be no checkpoint now. It changes nothing.
    fn hinders(&self, still: &Still, reasons: &mut Vec<Refusal>) -> Done {
        let _ = (still, reasons);
        Ok(())
    }

    /// **Quiesce**: nothing hinders the checkpoint. Brings to rest what moves by itself, until [`Part::release`].
    fn quiesce(&self, still: &Still) -> Done {
        let _ = still;
        Ok(())
    }

    /// **Drain**: takes in what is on its way. May have several turns.
    fn drain(&self, still: &Still) -> Done {
        let _ = still;
        Ok(())
    }

    /// **Seal**: brings everything into the form that a restart starts from.
    fn seal(&self, still: &Still) -> Done {
        let _ = still;
        Ok(())
    }

    /// **Save**: every part is sealed. Brings data from outside the process into its memory, until [`Part::release`].
    fn save(&self, still: &Still) -> Done {
        let _ = still;
        Ok(())
    }

    /// **Capture**: writes down what a restart needs.
    fn capture(&self, still: &Still, payloads: &mut Vec<Payload>) -> Done {
        let _ = (still, payloads);
        Ok(())
    }

    /// **Release**: the application is about to run on, whether there is an image or the checkpoint was given up. This can come at any moment. Undoes the
    /// work of [`Part::quiet`] and [`Part::save`].
    ///
    /// # Errors
    /// The application cannot run on and is lost. The text tells people why.
    fn release(&self) -> Result<(), String> {
        Ok(())
    }

    /// **Check** of a restart: adds every reason why this process cannot become what the image holds. It changes and maps nothing.
    fn check(&self, saved: &dyn Saved, reasons: &mut Vec<Refusal>) {
        let _ = (saved, reasons);
    }

    /// **Map**: memory comes to its old addresses. MPI runs.
    fn map(&self, back: &mut Back) -> Done {
        let _ = back;
        Ok(())
    }

    /// **Open**: every rank of the job has its memory. The first phase that changes files.
    fn open(&self, back: &mut Back) -> Done {
        let _ = back;
        Ok(())
    }

    /// **Rebuild**: runs on the main thread, which is the application's again, with its signal handlers in place.
    fn rebuild(&self, back: &mut Back) -> Done {
        let _ = back;
        Ok(())
    }

    /// **Resume**: all threads exist, and wait.
    fn resume(&self, back: &mut Back) -> Done {
        let _ = back;
        Ok(())
    }

    /// **Finish**: no more threads of the lower half will start. This is the last phase before the application's next
    /// instruction.
    fn finish(&self, back: &mut Back) -> Done {
        let _ = back;
        Ok(())
    }
}

/// Returns every reason why the payloads of these names and versions are not those that the parts read: unknown kinds, other versions,
/// missing kinds. `kinds` are those of all parts.
pub fn misunderstood<'a>(
    kinds: impl Iterator<Item = &'a Kind> + Clone,
    found: &[(&str, u32)],
) -> Vec<Refusal> {
    let unknown = found.iter().filter_map(|(name, version)| {
        match kinds.clone().find(|kind| kind.name == *name) {
            None => Some(refusal!(
                OtherBuild,
                "it holds '{name}', but this release does not know it: restart with the release that wrote it"
            )),
            Some(kind) if kind.version != *version => Some(refusal!(
                OtherBuild,
                "it holds '{name}' of version {version}, but this release reads version {}: restart with the release \
                 that wrote it",
                kind.version
            )),
            Some(_) => None,
        }
    });
    let there = |kind: &&Kind| found.iter().any(|(name, _)| *name == kind.name);
    let missing = kinds
        .clone()
        .filter(|kind| kind.always && !there(kind))
        .map(|kind| {
            refusal!(
                BrokenImage,
                "it holds no '{}': use another epoch",
                kind.name
            )
        });
    unknown.chain(missing).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [Kind; 2] = [
        Kind {
            name: "files",
            version: 3,
            always: true,
        },
        Kind {
            name: "windows",
            version: 1,
            always: false,
        },
    ];

    #[test]
    fn what_the_parts_read_is_understood() {
        let none: [Refusal; 0] = [];
        assert_eq!(misunderstood(KINDS.iter(), &[("files", 3)]), none);
        assert_eq!(
            misunderstood(KINDS.iter(), &[("windows", 1), ("files", 3)]),
            none
        );
    }

    #[test]
    fn everything_else_is_refused_by_name() {
        let reasons = misunderstood(KINDS.iter(), &[("sockets", 1), ("windows", 2)]);
        let reasons: Vec<String> = reasons.iter().map(Refusal::to_string).collect();
        assert_eq!(
            reasons,
            [
                "it holds 'sockets', but this release does not know it: restart with the release that wrote it [other-build]",
                "it holds 'windows' of version 2, but this release reads version 1: restart with the release that wrote it [other-build]",
                "it holds no 'files': use another epoch [broken-image]",
            ]
        );
    }

    /// The smallest part: a name.
    struct Nothing;

    impl Part<(), ()> for Nothing {
        fn name(&self) -> &'static str {
            "nothing"
        }
    }

    #[test]
    fn a_part_has_nothing_to_do_unless_it_says_so() {
        let (part, mut reasons, mut payloads) = (Nothing, vec![], vec![]);
        assert_eq!(part.hinders(&(), &mut reasons), Ok(()));
        assert_eq!(part.capture(&(), &mut payloads), Ok(()));
        assert!(reasons.is_empty() && payloads.is_empty() && part.kinds().is_empty());
    }
}
