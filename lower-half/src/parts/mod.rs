//! The parts of a checkpoint, in the order in which they have their turns.
//!
//! The crate in `plugins/api` defines a part. A new one is a file here (or a crate below `plugins`) and a line in [`PARTS`]; the
//! code that carries out a checkpoint or a restart does not change. The floors below do the work: `capture` looks, `restore`
//! gives back, and the parts decide when.

mod attributes;
mod credentials;
mod descriptors;
pub mod gate;
mod gpu;
mod guarded;
mod holdings;
mod input;
mod ipc;
mod limits;
mod locked;
mod mapped_files;
mod memory;
mod messages;
mod mpi_files;
mod objects;
mod page;
mod process;
mod processes;
mod scheduling;
mod signals;
mod starters;
mod threads;

use stillpoint_faults::{Point, strike};
use stillpoint_image::Reader;
use stillpoint_part::{Done, Failure, Kind, Part, Payload, misunderstood};
use stillpoint_refusals::{Refusal, refusal};

pub use threads::returning;

use crate::capture::stopped_process::Still;
use crate::restore::Image;
use crate::restore::back::Back;

/// Any part of this process.
pub type AnyPart = dyn for<'a> Part<Still<'a>, Back>;

/// Every part. The order has these reasons:
///
/// * `messages` first: the upper half's own reasons against a checkpoint are reported before those that are seen from outside;
/// * `gate` before `process` before `signals`: timers are read before the signals that they send, and set before the process's clocks;
/// * `descriptors` before `gate`: the gate notes which of them belong to the application;
/// * `guarded` before `locked`: locked memory takes no guards;
/// * `scheduling` first, and `limits` and `credentials` last, at the end of a restart: threads inherit the first, and the others may hinder
///   the rest of the lower half's work.
pub static PARTS: [&AnyPart; 23] = [
    &messages::Messages,
    &processes::Processes,
    &holdings::Holdings,
    &gpu::Gpu,
    &memory::Memory,
    &mapped_files::MappedFiles,
    &threads::Threads,
    &scheduling::Scheduling,
    &starters::Starters,
    &ipc::Ipc,
    &input::Input,
    &descriptors::Descriptors,
    &mpi_files::MpiFiles,
    &gate::Gate,
    &page::Page,
    &objects::Objects,
    &process::Process,
    &signals::Signals,
    &attributes::Attributes,
    &guarded::GuardedMemory,
    &locked::LockedMemory,
    &limits::Limits,
    &credentials::Credentials,
];

/// Returns every kind of payload that an image of this release may hold.
fn kinds() -> impl Iterator<Item = &'static Kind> + Clone {
    PARTS.iter().flat_map(|part| part.kinds())
}

/// Strikes a fault point of a part's turn.
fn at(point: Point) -> Done {
    strike(point).map_err(|error| refusal!(FaultPoint, "{error}"))?;
    Ok(())
}

/// Puts a payload down as JSON.
fn put(payloads: &mut Vec<Payload>, kind: Kind, what: &impl serde::Serialize) -> Done {
    let bytes = serde_json::to_vec(what)
        .map_err(|error| refusal!(Internal, "'{}' cannot be put down: {error}", kind.name))?;
    payloads.push(Payload { kind, bytes });
    Ok(())
}

/// Lets every part note what it needs, before the application's first instruction.
pub fn remember() {
    PARTS.iter().for_each(|part| part.remember());
}

/// Brings everything to rest that works for the application outside of its process.
///
/// # Errors
/// It does not come to rest, or the checkpoint has been given up.
pub fn quiet(given_up: &dyn Fn() -> bool) -> Done {
    PARTS.iter().try_for_each(|part| part.quiet(given_up))
}

/// Returns every reason why there can be no checkpoint now.
///
/// # Errors
/// The checkpoint has been given up, or a part cannot find out.
pub fn hinders(still: &Still<'_>) -> Result<Vec<Refusal>, Failure> {
    let mut reasons = Vec::new();
    for part in PARTS {
        part.hinders(still, &mut reasons)?;
    }
    Ok(reasons)
}

/// Gives every part its turn in a phase of a checkpoint.
pub fn each(still: &Still<'_>, turn: impl Fn(&AnyPart, &Still<'_>) -> Done) -> Done {
    PARTS.iter().try_for_each(|part| turn(*part, still))
}

/// Returns the payloads of all parts.
///
/// # Errors
/// The first part fails, or the checkpoint has been given up.
pub fn capture(still: &Still<'_>) -> Result<Vec<Payload>, Failure> {
    let mut payloads = Vec::new();
    for part in PARTS {
        part.capture(still, &mut payloads)?;
    }
    Ok(payloads)
}

/// Tells every part that the application is about to run on.
///
/// # Errors
/// It cannot run on.
pub fn release() -> Result<(), String> {
    PARTS.iter().try_for_each(|part| part.release())
}

/// Returns every reason why an image cannot be restarted here.
pub fn check(image: &Reader) -> Vec<Refusal> {
    let found: Vec<(&str, u32)> = image
        .blobs()
        .iter()
        .map(|blob| (blob.name.as_str(), blob.version))
        .collect();
    let mut reasons = misunderstood(kinds(), &found);
    if reasons.is_empty() {
        let saved = Image(image);
        PARTS
            .iter()
            .for_each(|part| part.check(&saved, &mut reasons));
    }
    reasons
}

/// Gives every part its turn in a phase of a restart.
///
/// # Errors
/// The first failure of a part, in words for people.
pub fn bring_back(
    back: &mut Back,
    turn: impl Fn(&AnyPart, &mut Back) -> Done,
) -> Result<(), Refusal> {
    for part in PARTS {
        turn(part, back).map_err(|failure| match failure {
            Failure::Refused(reason) => reason,
            Failure::Hindered(reasons) => Refusal::together(reasons),
            Failure::GivenUp => refusal!(Internal, "{}: given up", part.name()),
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use stillpoint_image::descriptors::Descriptors;
    use stillpoint_image::{Compression, Identity, Writer};

    use stillpoint_refusals::in_words;

    use super::*;
    use crate::capture::environment;

    #[test]
    fn names_and_kinds_are_those_of_one_part() {
        let names: BTreeSet<&str> = PARTS.iter().map(|part| part.name()).collect();
        assert_eq!(names.len(), PARTS.len());
        let found: BTreeSet<&str> = kinds().map(|kind| kind.name).collect();
        assert_eq!(found.len(), kinds().count());
    }

    #[test]
    fn an_image_with_other_payloads_is_refused_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("image");
        let mut writer = Writer::create(&path, Compression::Lz4).unwrap();
        writer.memory(&[]).unwrap();
        writer.regions(&[]).unwrap();
        writer.identity(&Identity::default()).unwrap();
        writer.environment(&environment::here()).unwrap();
        writer.threads(&[]).unwrap();
        writer.descriptors(&Descriptors::default()).unwrap();
        writer.blob("sockets", 1, b"").unwrap();
        writer.finish().unwrap();
        let reasons = in_words(&check(&Reader::open(&path).unwrap()));
        for needle in [
            "'sockets', but this release does not know it",
            "no 'gate page'",
        ] {
            assert!(reasons.contains(needle), "{reasons}");
        }
    }
}
