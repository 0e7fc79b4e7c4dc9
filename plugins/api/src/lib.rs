//! What a part of a checkpoint is.
//!
//! A checkpoint is an ordered list of parts: memory, threads, descriptors, MPI objects and so on. Each says what hinders it, has its
//! turn in every phase, and puts down what a restart needs as payloads: kind, version, bytes. Whoever carries a checkpoint or a
//! restart out knows the phases and the payloads, and none of the parts.
//!
//! Every method but [`Part::name`] does nothing unless the part has something to do there. In one phase the parts have their turns
//! in the list's order.

#![forbid(unsafe_code)]

/// Why a part's turn has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The checkpoint has been given up meanwhile: nobody wants to know.
    GivenUp,
    /// What hinders the checkpoint has turned up after the check: as [`Part::hinders`] would have said it.
    Hindered(Vec<String>),
    /// It cannot be done, in words for people that name what and say what to do.
    Refused(String),
}

impl From<String> for Failure {
    fn from(reason: String) -> Failure {
        Failure::Refused(reason)
    }
}

/// What a turn ends with.
pub type Done = Result<(), Failure>;

/// Of a payload: what it is, and in which form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Unique among all kinds, and never used again for something else.
    pub name: &'static str,
    /// Counts up with every change of the bytes that an older reader would misread.
    pub version: u32,
    /// Whether every image has one.
    pub always: bool,
}

/// What a part has put down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    pub kind: Kind,
    pub bytes: Vec<u8>,
}

/// What an image holds, for a restart to read.
pub trait Saved {
    /// The bytes of a kind; `None` where the image has none.
    fn payload(&self, kind: &Kind) -> Option<&[u8]>;
}

/// One part of a checkpoint. `Still` is a process that stands still, `Back` one that is coming back.
pub trait Part<Still: ?Sized, Back: ?Sized>: Sync {
    /// What the part is called where something is said of it.
    fn name(&self) -> &'static str;

    /// The kinds of payload that it writes, and the only ones that it reads.
    fn kinds(&self) -> &'static [Kind] {
        &[]
    }

    /// Before the application's first instruction, in every launch: notes what is the launch's own.
    fn remember(&self) {}

    /// **Quiet**: everybody is parked, and nothing has been looked at. What works for the application outside of its process comes to rest, until
    /// [`Part::release`]. The one turn in which threads may be let run on for that; they stand when it ends well. What is begun must
    /// be seen by `release`, whenever that comes: nothing is begun once the checkpoint is given up.
    fn quiet(&self, given_up: &dyn Fn() -> bool) -> Done {
        let _ = given_up;
        Ok(())
    }

    /// **Check**: every reason why there can be no checkpoint now. Nothing is changed.
    fn hinders(&self, still: &Still, reasons: &mut Vec<String>) -> Done {
        let _ = (still, reasons);
        Ok(())
    }

    /// **Quiesce**: nothing hinders. Brings what moves by itself to rest, until [`Part::release`].
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

    /// **Save**: every part is sealed. What lies outside of the process comes into its memory, until [`Part::release`].
    fn save(&self, still: &Still) -> Done {
        let _ = still;
        Ok(())
    }

    /// **Capture**: puts down what a restart needs.
    fn capture(&self, still: &Still, payloads: &mut Vec<Payload>) -> Done {
        let _ = (still, payloads);
        Ok(())
    }

    /// **Release**: the application is about to run on, whether there is an image or the checkpoint was given up, at any moment. What [`Part::quiet`] and
    /// [`Part::save`] have done is undone.
    ///
    /// # Errors
    /// The application cannot run on, in words for people: it is lost.
    fn release(&self) -> Result<(), String> {
        Ok(())
    }

    /// **Check** of a restart: every reason why this process cannot become what the image holds. Nothing is changed, and nothing is mapped.
    fn check(&self, saved: &dyn Saved, reasons: &mut Vec<String>) {
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

    /// **Rebuild**: on the main thread, which is the application's again, its handlers in place.
    fn rebuild(&self, back: &mut Back) -> Done {
        let _ = back;
        Ok(())
    }

    /// **Resume**: all threads are there, and wait.
    fn resume(&self, back: &mut Back) -> Done {
        let _ = back;
        Ok(())
    }

    /// **Finish**: no thread of the lower half is to be started any more. The last before the application's next instruction.
    fn finish(&self, back: &mut Back) -> Done {
        let _ = back;
        Ok(())
    }
}

/// Every reason why payloads of these names and versions are not those that the parts read: what nobody knows, what is there in another
/// version, what is missing. `kinds` are those of all parts.
pub fn misunderstood<'a>(
    kinds: impl Iterator<Item = &'a Kind> + Clone,
    found: &[(&str, u32)],
) -> Vec<String> {
    let unknown = found.iter().filter_map(|(name, version)| {
        match kinds.clone().find(|kind| kind.name == *name) {
            None => Some(format!(
                "it holds '{name}', which this release does not know: restart with the release that wrote it"
            )),
            Some(kind) if kind.version != *version => Some(format!(
                "it holds '{name}' of version {version}, this release reads version {}: restart with the release that wrote it",
                kind.version
            )),
            Some(_) => None,
        }
    });
    let there = |kind: &&Kind| found.iter().any(|(name, _)| *name == kind.name);
    let missing = kinds
        .clone()
        .filter(|kind| kind.always && !there(kind))
        .map(|kind| format!("it holds no '{}': use another epoch", kind.name));
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
        let none: [&str; 0] = [];
        assert_eq!(misunderstood(KINDS.iter(), &[("files", 3)]), none);
        assert_eq!(
            misunderstood(KINDS.iter(), &[("windows", 1), ("files", 3)]),
            none
        );
    }

    #[test]
    fn everything_else_is_refused_by_name() {
        let reasons = misunderstood(KINDS.iter(), &[("sockets", 1), ("windows", 2)]);
        assert_eq!(
            reasons,
            [
                "it holds 'sockets', which this release does not know: restart with the release that wrote it",
                "it holds 'windows' of version 2, this release reads version 1: restart with the release that wrote it",
                "it holds no 'files': use another epoch",
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
