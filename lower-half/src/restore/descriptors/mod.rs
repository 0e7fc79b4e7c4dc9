//! Restores descriptors under their old numbers: reserves the numbers first, then opens one descriptor after the other.

mod epoll;
mod locks;
mod open;
mod outward;
mod owned;
mod owner;
mod pairs;
mod rehearsal;
mod settle;
mod special;
mod timer;
mod unconnected;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use stillpoint_image::Reader;
use stillpoint_image::descriptors::{Description, DescriptorKind, Descriptors};
use stillpoint_refusals::{Refusal, refusal};

use super::RestoreError;
use super::content_source::Supply;
use super::objects::Objects;
use crate::capture::descriptors::streams;
use crate::ground::{connection, input};
use pairs::Pairs;
pub use rehearsal::rehearse;
use special::Pipes;

/// The pipes and pairs of sockets, each with two ends that are separate descriptions.
#[derive(Default)]
struct Shared {
    pipes: Pipes,
    pairs: Pairs,
}

/// Returns, for people, the files that a restart needs and that are not as they must be.
pub fn missing(table: &Descriptors) -> Vec<Refusal> {
    let mut reasons = Vec::new();
    for (index, description) in table.descriptions.iter().enumerate() {
        let number = table
            .numbers
            .iter()
            .find(|number| number.description == index)
            .map_or(-1, |number| number.number);
        let Some(path) = open::path(&description.kind) else {
            continue;
        };
        match std::fs::symlink_metadata(path) {
            Err(error) => reasons.push(refusal!(
                MissingFile,
                "descriptor {number} is {path}, which cannot be opened: {error}"
            )),
            Ok(file) => {
                if let DescriptorKind::File {
                    bytes, cut: true, ..
                } = description.kind
                    && file.len() < bytes
                {
                    reasons.push(refusal!(
                        MissingFile,
                        "descriptor {number} is {path}, which has {} bytes now and had {bytes} at the checkpoint: put \
                         the file back as it was",
                        file.len()
                    ));
                }
            }
        }
    }
    reasons.extend(locks::held_elsewhere(table));
    let known = table.descriptions.len();
    if table
        .numbers
        .iter()
        .any(|number| number.description >= known || number.number < 0)
    {
        reasons.push(refusal!(
            BrokenImage,
            "its descriptor table is damaged: use another epoch"
        ));
    }
    reasons
}

/// Occupies every number except for the launcher's streams.
pub fn reserve(table: &Descriptors) -> Result<(), RestoreError> {
    let failed = |source| RestoreError::System {
        what: "cannot reserve descriptor numbers".into(),
        source,
    };
    let highest = table
        .numbers
        .iter()
        .map(|number| number.number)
        .max()
        .unwrap_or(-1);
    raise_limit(highest);
    streams::note_above(highest);
    // SAFETY: this runs before Stillpoint starts any other thread, so nothing else looks at the environment.
    unsafe { connection::move_above(highest) }.map_err(failed)?;
    input::move_above(highest).map_err(failed)?;
    let null = File::open("/dev/null").map_err(failed)?;
    for number in table
        .numbers
        .iter()
        .map(|number| number.number)
        .filter(|number| *number > 2)
    {
        if number == null.as_raw_fd() {
            continue;
        }
        // SAFETY: the launcher has left open by accident what is there now, and nothing in this process uses it yet.
        if unsafe { libc::dup3(null.as_raw_fd(), number, libc::O_CLOEXEC) } < 0 {
            return Err(failed(io::Error::last_os_error()));
        }
    }
    if table
        .numbers
        .iter()
        .any(|number| number.number == null.as_raw_fd())
    {
        // This descriptor already has a number that must be occupied.
        std::mem::forget(null);
    }
    Ok(())
}

/// Raises the limit so that numbers up to `highest` may be used, as far as the hard limit permits.
fn raise_limit(highest: RawFd) {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the kernel fills, then reads, the structure, which lives on this stack.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0
            && limit.rlim_cur <= highest as u64 + 64
        {
            limit.rlim_cur = (highest as u64 + 64).min(limit.rlim_max);
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}

/// Cuts each file that was open for writing back to its length at the checkpoint.
pub fn cut_files(table: &Descriptors) -> Result<(), RestoreError> {
    for description in &table.descriptions {
        if let DescriptorKind::File {
            path,
            bytes,
            cut: true,
        } = &description.kind
        {
            let file = OpenOptions::new().write(true).open(path);
            let cut = file.and_then(|file| {
                if file.metadata()?.len() > *bytes {
                    file.set_len(*bytes)
                } else {
                    Ok(())
                }
            });
            cut.map_err(RestoreError::system(format!(
                "cannot cut {path} back to {bytes} bytes"
            )))?;
        }
    }
    Ok(())
}

/// Opens everything again, under its number. Locks are taken later, by [`lock_all`]. Returns the writing end of the pipe with the number `fed`.
pub fn open_all(
    reader: &Reader,
    objects: &mut Objects,
    fed: Option<u64>,
) -> Result<Option<OwnedFd>, RestoreError> {
    let table = reader.descriptors();
    let mut shared = Shared::default();
    for (index, description) in in_order(table) {
        let opened = open_one(description, reader, objects, &mut shared)?;
        for number in table
            .numbers
            .iter()
            .filter(|number| number.description == index)
        {
            let flags = if number.close_on_exec {
                libc::O_CLOEXEC
            } else {
                0
            };
            let source = opened.as_raw_fd();
            if source == number.number {
                continue;
            }
            // SAFETY: the number was reserved for this, or is a stream that the application had replaced; nothing owns it.
            if unsafe { libc::dup3(source, number.number, flags) } < 0 {
                return Err(RestoreError::System {
                    what: failure(description),
                    source: io::Error::last_os_error(),
                });
            }
        }
    }
    let writer = fed.and_then(|pipe| shared.pipes.writer(pipe));
    shared.finish()?;
    for (index, description) in table.descriptions.iter().enumerate() {
        let number = table
            .numbers
            .iter()
            .find(|number| number.description == index);
        if let Some(number) = number {
            watch(description, number.number)?;
        }
    }
    Ok(writer)
}

/// Takes the application's locks, once no descriptor is closed any more before the application runs.
pub fn lock_all(table: &Descriptors) -> Result<(), RestoreError> {
    locks::take_all(table)
}

/// Restores what needs the threads to exist, and closes the streams that the application had closed.
pub fn finish(table: &Descriptors) -> Result<(), RestoreError> {
    owner::set_all(table)?;
    for stream in 0..3 {
        if !table.numbers.iter().any(|number| number.number == stream) {
            // SAFETY: this is a stream of the launcher's, which the application had closed; Stillpoint has a duplicate of its own.
            unsafe { libc::close(stream) };
        }
    }
    Ok(())
}

/// Returns the descriptions, epoll sets last: the descriptors that they watch must exist.
fn in_order(table: &Descriptors) -> impl Iterator<Item = (usize, &Description)> {
    let is_epoll =
        |description: &Description| matches!(description.kind, DescriptorKind::Epoll { .. });
    [false, true].into_iter().flat_map(move |last| {
        let all = table.descriptions.iter().enumerate();
        all.filter(move |(_, description)| is_epoll(description) == last)
    })
}

fn failure(description: &Description) -> String {
    format!("cannot open {} again", open::name(&description.kind))
}

/// Opens one description, under any number.
fn open_one(
    description: &Description,
    supply: &dyn Supply,
    objects: &mut Objects,
    shared: &mut Shared,
) -> Result<OwnedFd, RestoreError> {
    let opened = open::open(description, supply, objects, shared)?;
    let opened = opened.map_err(RestoreError::system(failure(description)))?;
    settle::settle(description, &opened).map_err(RestoreError::system(failure(description)))?;
    Ok(opened)
}

/// Makes the entries of an epoll set; does nothing for other kinds.
fn watch(description: &Description, number: RawFd) -> Result<(), RestoreError> {
    match &description.kind {
        DescriptorKind::Epoll { watched } => epoll::watch(number, watched).map_err(
            RestoreError::system("cannot restore the entries of an epoll set"),
        ),
        _ => Ok(()),
    }
}

impl Shared {
    /// Finishes pipes and pairs when all ends exist.
    fn finish(self) -> Result<(), RestoreError> {
        self.pairs.finish().map_err(RestoreError::system(
            "cannot make socket pairs again".to_owned(),
        ))
    }
}
