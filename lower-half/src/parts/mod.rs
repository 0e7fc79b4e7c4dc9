//! The parts of a checkpoint, in the order in which they have their turns.
//!
//! What a part is stands in `plugins/api`. A new one is a file here (or a crate below `plugins`) and a line in [`PARTS`]; whoever
//! carries a checkpoint or a restart out does not change. What they do is done by the floors below: `capture` looks, `restore` gives
//! back, and here stands when.

mod attributes;
mod credentials;
mod descriptors;
mod gate;
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

pub use threads::returning;

use crate::capture::still::Still;
use crate::restore::Image;
use crate::restore::back::Back;

/// Any part of this process.
pub type AnyPart = dyn for<'a> Part<Still<'a>, Back>;

/// Every part. What follows from the order:
///
/// * `messages` first: what the upper half itself says of a checkpoint is told before what is seen from outside;
/// * `gate` before `process` before `signals`: timers are looked at before the signals that they send, and set before the process's clocks;
/// * `descriptors` before `gate`: the gate notes whose they are;
/// * `guarded` before `locked`: locked memory takes no guards;
/// * `scheduling` first and `limits` and `credentials` last at the end of a restart: threads inherit the one, and the others may keep the
///   lower half from what it still has to do.
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

/// Every kind of payload that an image of this release may hold.
fn kinds() -> impl Iterator<Item = &'static Kind> + Clone {
    PARTS.iter().flat_map(|part| part.kinds())
}

/// A fault point of a part's turn.
fn at(point: Point) -> Done {
    strike(point).map_err(|error| error.to_string())?;
    Ok(())
}

/// Puts a payload down as JSON.
fn put(payloads: &mut Vec<Payload>, kind: Kind, what: &impl serde::Serialize) -> Done {
    let bytes = serde_json::to_vec(what)
        .map_err(|error| format!("'{}' cannot be put down: {error}", kind.name))?;
    payloads.push(Payload { kind, bytes });
    Ok(())
}

/// Before the application's first instruction.
pub fn remember() {
    PARTS.iter().for_each(|part| part.remember());
}

/// What works for the application outside of its process comes to rest.
///
/// # Errors
/// It does not, or the checkpoint has been given up.
pub fn quiet(given_up: &dyn Fn() -> bool) -> Done {
    PARTS.iter().try_for_each(|part| part.quiet(given_up))
}

/// Every reason why there can be no checkpoint now.
///
/// # Errors
/// It has been given up, or a part cannot find out.
pub fn hinders(still: &Still<'_>) -> Result<Vec<String>, Failure> {
    let mut reasons = Vec::new();
    for part in PARTS {
        part.hinders(still, &mut reasons)?;
    }
    Ok(reasons)
}

/// The phases of a checkpoint that every part has a turn in.
pub fn each(still: &Still<'_>, turn: impl Fn(&AnyPart, &Still<'_>) -> Done) -> Done {
    PARTS.iter().try_for_each(|part| turn(*part, still))
}

/// What all parts put down.
///
/// # Errors
/// The first that cannot, or that the checkpoint has been given up.
pub fn capture(still: &Still<'_>) -> Result<Vec<Payload>, Failure> {
    let mut payloads = Vec::new();
    for part in PARTS {
        part.capture(still, &mut payloads)?;
    }
    Ok(payloads)
}

/// The application is about to run on.
///
/// # Errors
/// It cannot.
pub fn release() -> Result<(), String> {
    PARTS.iter().try_for_each(|part| part.release())
}

/// Every reason why an image cannot be restarted here.
pub fn check(image: &Reader) -> Vec<String> {
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

/// One phase of a restart.
///
/// # Errors
/// The first part that cannot, in words for people.
pub fn bring_back(
    back: &mut Back,
    turn: impl Fn(&AnyPart, &mut Back) -> Done,
) -> Result<(), String> {
    for part in PARTS {
        turn(part, back).map_err(|failure| match failure {
            Failure::Refused(reason) => reason,
            Failure::Hindered(reasons) => reasons.join("; "),
            Failure::GivenUp => format!("{}: given up", part.name()),
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use stillpoint_image::descriptors::Descriptors;
    use stillpoint_image::{Compression, Identity, Writer};

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
        let reasons = check(&Reader::open(&path).unwrap()).join("\n");
        for needle in [
            "'sockets', which this release does not know",
            "no 'gate page'",
        ] {
            assert!(reasons.contains(needle), "{reasons}");
        }
    }
}
