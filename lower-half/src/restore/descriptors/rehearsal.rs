//! Does what a restart would do about descriptors to scratch ones, while the application still lives.
//!
//! Each recipe is decoded from the bytes that an image would hold and carried out by the restart's own code. The capture's own code then describes the result,
//! and the two descriptions must be the same. So every carried descriptor has been tested; sockets without a
//! connection without their names, which belong to the living ones. A new kind of descriptor, or a new part of a description, does not
//! compile until this file says how to compare it.
//!
//! To be called [apart](crate::capture::own_descriptor_table): scratch descriptors must not take the application's numbers, nor its locks. The rehearsal has no
//! visible effect: it makes, cuts and locks no file, and moves no position of the application's. If the application watches files by inotify, they are checked
//! without being opened.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};

use stillpoint_image::descriptors::{Description, DescriptorKind, Descriptors};
use stillpoint_refusals::{Refusal, refusal};

use super::{Shared, in_order, open, open_one, settle, watch};
use crate::capture::contents::Contents;
use crate::capture::descriptors::epoll::{ALWAYS, is_spent};
use crate::capture::descriptors::{All, OWN, OpenDescriptor, describe};
use crate::restore::RestoreError;
use crate::restore::content_source::Supply;
use crate::restore::objects::{Objects, UNLINKED};

/// Returns, for people, what could not be restored. `living` are the descriptors that `table` was made from.
pub fn rehearse(
    table: &Descriptors,
    living: &[OpenDescriptor],
    contents: &Contents,
) -> Vec<Refusal> {
    let decoded = serde_json::to_vec(table).and_then(|bytes| serde_json::from_slice(&bytes));
    let table: Descriptors = match decoded {
        Ok(decoded) => decoded,
        Err(error) => {
            return vec![refusal!(Internal, "cannot record its descriptors: {error}")];
        }
    };
    let quietly = is_watched(&table);
    let pending = Pending {
        table: &table,
        contents,
    };
    let mut all = All::new(living);
    let mut reasons = Vec::new();
    for unit in units(&table) {
        let watched =
            |(_, description): &Unit<'_>| quietly && open::path(&description.kind).is_some();
        let (quiet, others): (Vec<_>, Vec<_>) = unit.into_iter().partition(watched);
        for (index, description) in quiet {
            let path = open::path(&description.kind).unwrap_or_default();
            if let Err(error) = look(path, description.flags) {
                reasons.push(refusal(&table, index, &error.to_string()));
            }
        }
        reasons.extend(try_out(&table, &others, &pending, &mut all));
    }
    reasons
}

/// A description and its place in the table.
type Unit<'a> = (usize, &'a Description);

/// Groups descriptions that have to be open at the same time for a test: an epoll set or a file by itself, a pipe or a pair of sockets with both ends. So a
/// process that is near its limit of descriptors needs few more.
fn units(table: &Descriptors) -> Vec<Vec<Unit<'_>>> {
    let mut units: Vec<Vec<Unit<'_>>> = Vec::new();
    let mut shared: HashMap<(bool, u64), usize> = HashMap::new();
    for (index, description) in in_order(table) {
        let end_of = match &description.kind {
            DescriptorKind::Pipe { pipe, .. } => Some((false, *pipe)),
            DescriptorKind::SocketPair { pair, .. } => Some((true, *pair)),
            _ => None,
        };
        let known = end_of.map(|of| *shared.entry(of).or_insert(units.len()));
        match known.and_then(|known| units.get_mut(known)) {
            Some(unit) => unit.push((index, description)),
            None => units.push(vec![(index, description)]),
        }
    }
    units
}

/// Opens a group's descriptions and compares them with the originals.
fn try_out(
    table: &Descriptors,
    unit: &[Unit<'_>],
    pending: &Pending<'_>,
    all: &mut All<'_>,
) -> Vec<Refusal> {
    let (mut objects, mut shared) = (Objects::default(), Shared::default());
    let mut reasons = Vec::new();
    let mut made: Vec<(Unit<'_>, OwnedFd)> = Vec::new();
    for (index, description) in unit {
        if let Some(nameless) = without_a_name(description) {
            if let Err(error) = open_one(&nameless, pending, &mut objects, &mut shared) {
                reasons.push(refusal(table, *index, &error.to_string()));
            }
            continue;
        }
        match open_one(description, pending, &mut objects, &mut shared) {
            Ok(opened) => made.push(((*index, description), opened)),
            Err(error) => reasons.push(refusal(table, *index, &error.to_string())),
        }
    }
    if let Err(error) = shared.finish() {
        reasons.push(refusal!(NotReopened, "{error}"));
    }
    for ((index, description), opened) in &made {
        if let Err(error) = watch(description, opened.as_raw_fd()) {
            reasons.push(refusal(table, *index, &error.to_string()));
        }
    }
    if reasons.is_empty() {
        reasons = differences(table, &made, all);
    }
    reasons
}

/// Describes opened descriptors as if they were the application's, and compares the descriptions with the originals.
fn differences(
    table: &Descriptors,
    made: &[(Unit<'_>, OwnedFd)],
    all: &mut All<'_>,
) -> Vec<Refusal> {
    let mut reasons = Vec::new();
    let (mut units, mut scratch) = (Vec::new(), Vec::new());
    for (unit, opened) in made {
        // The launcher's streams come from the new launch, and may be anything there. Connections are lost at a restart only.
        let inherited = matches!(
            unit.1.kind,
            DescriptorKind::Inherited { .. } | DescriptorKind::LostConnection { .. }
        );
        match OpenDescriptor::look(opened.as_raw_fd(), OWN) {
            Ok(_) if inherited => {}
            Ok(open) => {
                units.push(unit);
                scratch.push(open);
            }
            Err(error) => reasons.push(refusal(table, unit.0, &error.to_string())),
        }
    }
    all.with(scratch);
    let mut none = Contents::default();
    for ((index, before), open) in units.into_iter().zip(all.scratch()) {
        let same_file = || {
            open::path(&before.kind).is_none()
                || all
                    .number(number_of(table, *index))
                    .is_none_or(|living| living.key() == open.key())
        };
        let difference = match describe(open, all, &mut none) {
            Err(reason) => Some(reason.details().to_owned()),
            Ok(_) if !same_file() => Some("its path leads to another file".to_owned()),
            Ok(after) => difference(before, &after),
        };
        reasons.extend(difference.map(|difference| refusal(table, *index, &difference)));
    }
    reasons
}

/// Returns a socket's description without its name, which belongs to the living socket. It is opened, and not compared.
fn without_a_name(description: &Description) -> Option<Description> {
    let mut nameless = description.clone();
    let DescriptorKind::UnconnectedSocket {
        listens,
        name,
        peer,
        ..
    } = &mut nameless.kind
    else {
        return None;
    };
    *listens = false;
    name.clear();
    peer.clear();
    Some(nameless)
}

fn number_of(table: &Descriptors, description: usize) -> i32 {
    let mut numbers = table.numbers.iter();
    numbers
        .find(|number| number.description == description)
        .map_or(-1, |number| number.number)
}

fn refusal(table: &Descriptors, index: usize, problem: &str) -> Refusal {
    let name = table
        .descriptions
        .get(index)
        .map_or_else(String::new, |description| open::name(&description.kind));
    refusal!(
        NotReopened,
        "descriptor {} is {name}, and a restart could not restore it: {problem}: close it before a checkpoint",
        number_of(table, index)
    )
}

/// Returns a difference between two descriptions, if there is one that matters.
fn difference(before: &Description, after: &Description) -> Option<String> {
    let Description {
        kind,
        flags,
        offset,
        // Held by the living process; a restart takes them after that process has ended.
        locks: _,
        // With an owner, scratch descriptors would send signals to the application.
        owner: _,
        signal: _,
    } = after;
    // How a file was looked for matters no more once no name leads to it.
    let searched = match kind {
        DescriptorKind::Unlinked { .. } | DescriptorKind::Memory { .. } => {
            libc::O_TMPFILE | libc::O_NOFOLLOW
        }
        _ => 0,
    };
    let told_elsewhere = libc::O_CLOEXEC | libc::O_ASYNC | searched;
    let (is, would_be) = (comparable(&before.kind), comparable(kind));
    if is != would_be {
        return Some(format!("it is {is:?} and would be {would_be:?}"));
    }
    if (before.flags ^ flags) & !told_elsewhere != 0 {
        return Some(format!(
            "its flags are {:#o} and would be {flags:#o}",
            before.flags
        ));
    }
    (settle::seeks(kind) && before.offset != *offset)
        .then(|| format!("it is at byte {} and would be at {offset}", before.offset))
}

/// The file that a memory file of that name stands for, see `Objects`.
fn unlinked(bytes: u64, mode: u32) -> DescriptorKind {
    DescriptorKind::Unlinked {
        path: String::new(),
        bytes,
        content: 0,
        mode,
        linkable: false,
    }
}

/// Reduces the ticks and the time left of a timer to what a test can compare; `runs`: the timer is periodic. An absolute timer goes on as a relative one, and
/// time passes; a timer that is off, or has expired, stays so.
fn comparable_time(ticks: u64, value: u64, runs: bool) -> (u64, u64) {
    let over = (value != 0 || runs) && ticks > 0;
    match over || value != 0 {
        true => (0, 1),
        false => (ticks, value),
    }
}

/// Returns the kind without values that differ for every descriptor of that kind, or change with time.
fn comparable(kind: &DescriptorKind) -> DescriptorKind {
    let mut kind = kind.clone();
    match &mut kind {
        DescriptorKind::Inherited { stream: _ }
        | DescriptorKind::File {
            path: _,
            bytes: _,
            cut: _,
        }
        | DescriptorKind::Directory { path: _ }
        | DescriptorKind::Path { path: _ }
        | DescriptorKind::Device { path: _ }
        | DescriptorKind::EventFd {
            count: _,
            semaphore: _,
        }
        | DescriptorKind::SignalFd { mask: _ }
        | DescriptorKind::Inotify { watches: _ }
        | DescriptorKind::UnconnectedSocket {
            family: _,
            socket_type: _,
            protocol: _,
            listens: _,
            name: _,
            peer: _,
            mode: _,
            options: _,
        }
        | DescriptorKind::LostConnection {
            family: _,
            told: _,
            options: _,
        } => {}
        DescriptorKind::Unlinked {
            path,
            bytes: _,
            content,
            mode: _,
            linkable,
        } => {
            // The file never had a name, or has lost it.
            path.clear();
            *content = 0;
            *linkable = false;
        }
        DescriptorKind::Memory {
            name,
            bytes,
            content,
            seals: _,
            mode,
        } => {
            *content = 0;
            if name == UNLINKED {
                return unlinked(*bytes, *mode);
            }
        }
        DescriptorKind::Pipe {
            pipe,
            writes: _,
            content,
            bytes: _,
            packets: _,
            capacity: _,
        } => {
            *pipe = 0;
            *content = None;
        }
        DescriptorKind::SocketPair {
            pair,
            second: _,
            socket_type: _,
            content,
            bytes: _,
            messages: _,
            shut: _,
            reset: _,
            options: _,
        } => {
            *pair = 0;
            *content = None;
        }
        DescriptorKind::TimerFd {
            clock: _,
            settime_flags,
            ticks,
            value_nanoseconds,
            interval_nanoseconds,
        } => {
            *settime_flags &= libc::TFD_TIMER_CANCEL_ON_SET;
            let runs = *interval_nanoseconds != 0;
            (*ticks, *value_nanoseconds) = comparable_time(*ticks, *value_nanoseconds, runs);
        }
        DescriptorKind::Epoll { watched } => {
            for entry in &mut *watched {
                // A file may become ready at any time, and not every entry can be silenced (`epoll::silenced`).
                entry.told = false;
                if is_spent(entry) {
                    entry.events |= ALWAYS;
                }
            }
            watched.sort_by_key(|entry| (entry.number, entry.data, entry.events));
        }
    }
    kind
}

/// Whether the application might be told that a file was opened.
fn is_watched(table: &Descriptors) -> bool {
    table.descriptions.iter().any(|description| {
        matches!(&description.kind, DescriptorKind::Inotify { watches } if !watches.is_empty())
    })
}

/// Whether a path could be opened with these flags; does not open it.
pub fn look(path: &str, flags: i32) -> std::io::Result<()> {
    let place = std::ffi::CString::new(path)?;
    let mode = match flags & libc::O_ACCMODE {
        _ if flags & libc::O_PATH != 0 => libc::F_OK,
        libc::O_RDONLY => libc::R_OK,
        libc::O_WRONLY => libc::W_OK,
        _ => libc::R_OK | libc::W_OK,
    };
    // SAFETY: the path ends in NUL, and the kernel only reads it.
    match unsafe { libc::faccessat(libc::AT_FDCWD, place.as_ptr(), mode, libc::AT_EACCESS) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// The contents of an image that has not been written.
struct Pending<'a> {
    table: &'a Descriptors,
    contents: &'a Contents,
}

impl Supply for Pending<'_> {
    fn table(&self) -> &Descriptors {
        self.table
    }

    fn bytes(&self, content: u32, limit: u64) -> Result<Vec<u8>, RestoreError> {
        let bytes = self.contents.bytes_in_hand(content);
        bytes
            .filter(|bytes| bytes.len() as u64 <= limit)
            .map(<[u8]>::to_vec)
            .ok_or_else(|| {
                RestoreError::Refused(refusal!(Internal, "content {content} is missing"))
            })
    }

    /// As long as it must be, but empty: its content takes no memory.
    fn fill(&self, content: u32, file: &File) -> Result<(), RestoreError> {
        file.set_len(self.contents.bytes_of(content))
            .map_err(RestoreError::system("cannot set the length of a file"))
    }
}
