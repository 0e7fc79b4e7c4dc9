//! The launcher's standard streams: standard input, output and error of `stillpoint run` itself. The new launch provides them, whatever
//! they were in the old one.
//!
//! They are noted once, and every program that an application becomes or starts learns which they are. So a file that a script
//! has put in their place (`./app >out`, `zcat in | ./app`) belongs to the application, like any other descriptor. A standard
//! input that is a file or a pipe is not a stream of the launcher either: it belongs to the job ([`crate::ground::input`]).

use std::io;
use std::os::fd::{IntoRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

use super::same_open_file::{self, Same};
use super::{LIVING, OpenDescriptor, owned};
use crate::capture::contents::FileKey;
use crate::ground::inherited;

/// The environment variable with the launcher's descriptors, as JSON, for programs that an application becomes or starts.
pub const VARIABLE: &str = "STILLPOINT_STREAMS";

/// The lowest number for the duplicates, so that the application's own descriptors get the numbers that they would have without Stillpoint.
const FROM: RawFd = 900;
/// Any number will do, if those are too high.
const ANY: RawFd = 3;

/// A descriptor of the launcher: its number, device, inode and whether it is for reading or writing.
type Given = (RawFd, u64, u64, i32);

/// The launcher's open descriptors: its streams, and pipes and sockets that no program knows of. The application cannot lose them.
static GIVEN: OnceLock<Vec<Given>> = OnceLock::new();

/// Our own duplicates of the streams, made before the application's first instruction; -1 stands for a missing one.
static STREAMS: [AtomicI32; 3] = [const { AtomicI32::new(-1) }; 3];

/// Notes the launcher's descriptors, before the application can change them.
pub fn remember() {
    note([FROM, ANY]);
    if remembered(0).is_some_and(|number| {
        OpenDescriptor::look(number, LIVING).is_ok_and(|open| belongs_to_the_job(&open))
    }) {
        forget(0);
    }
}

/// The same where a process is about to come back, whose descriptors have numbers up to `highest`: the duplicates get none of these. Its standard input may
/// be this launch's whatever it is, until [`remember`].
pub fn note_above(highest: RawFd) {
    note([FROM.max(highest + 1), highest + 1]);
}

fn note(from: [RawFd; 2]) {
    GIVEN.get_or_init(|| {
        let all: Vec<OpenDescriptor> = inherited::descriptors()
            .filter_map(|number| OpenDescriptor::look(number as RawFd, LIVING).ok())
            .collect();
        let given =
            told().unwrap_or_else(|| all.iter().filter(|open| counts(open)).map(given).collect());
        for stream in given.iter().filter(|given| (0..3).contains(&given.0)) {
            // A script may have given them other numbers in this program.
            let here = all.iter().find(|open| same_as(open, stream));
            let here = here.and_then(|open| duplicate(open.number, from).ok());
            if let (Some(place), Some(here)) = (STREAMS.get(stream.0 as usize), here) {
                place.store(here.into_raw_fd(), Ordering::Release);
            }
        }
        given
    });
}

/// Returns the variable for programs that the application becomes or starts.
pub fn variable() -> Option<String> {
    let given = serde_json::to_string(GIVEN.get()?).ok()?;
    Some(format!("{VARIABLE}={given}"))
}

fn told() -> Option<Vec<Given>> {
    serde_json::from_str(&std::env::var(VARIABLE).ok()?).ok()
}

/// Returns whether the launcher has given the descriptor. Files above the streams count as opened by the program itself.
fn counts(open: &OpenDescriptor) -> bool {
    open.number < 3 || is_pipe_or_socket(open)
}

fn is_pipe_or_socket(open: &OpenDescriptor) -> bool {
    matches!(open.file_type(), libc::S_IFIFO | libc::S_IFSOCK)
}

fn given(open: &OpenDescriptor) -> Given {
    let key = open.key();
    (
        open.number,
        key.device,
        key.inode,
        open.flags & libc::O_ACCMODE,
    )
}

/// Returns whether a descriptor is one of the launcher's; its number may be another.
fn same_as(open: &OpenDescriptor, stream: &Given) -> bool {
    let (_, device, inode, access) = given(open);
    (device, inode, access) == (stream.1, stream.2, stream.3)
}

/// Returns whether a standard input is carried like any descriptor: files and pipes, and devices without state.
fn belongs_to_the_job(open: &OpenDescriptor) -> bool {
    /// The major number of `/dev/null` and similar devices.
    const MEMORY: u32 = 1;
    match open.file_type() {
        libc::S_IFREG | libc::S_IFIFO | libc::S_IFDIR => true,
        libc::S_IFCHR => libc::major(open.status.st_rdev) == MEMORY,
        _ => false,
    }
}

fn duplicate(number: RawFd, from: [RawFd; 2]) -> io::Result<OwnedFd> {
    let [first, then] = from;
    // SAFETY: F_DUPFD_CLOEXEC takes a number and touches no memory.
    let above = |from: RawFd| owned(unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, from) });
    above(first).or_else(|_| above(then))
}

fn forget(stream: usize) {
    let number = STREAMS[stream].swap(-1, Ordering::AcqRel);
    if number >= 0 {
        // SAFETY: the duplicate was made here, and no other code knows its number.
        unsafe { libc::close(number) };
    }
}

/// Returns the remembered stream's descriptor in this launch, or `None` if the launcher gave none, or the program does not have it.
pub fn remembered(stream: i32) -> Option<RawFd> {
    let number = STREAMS.get(stream as usize)?.load(Ordering::Acquire);
    (number >= 0).then_some(number)
}

/// Returns the launcher's stream that a descriptor is, if it is one.
pub(super) fn inherited(open: &OpenDescriptor) -> Option<i32> {
    let others = (0..3).filter(|stream| *stream != open.number);
    let mut all = (0..3).filter(|stream| *stream == open.number).chain(others);
    all.find(|stream| is(open, *stream))
}

/// Returns whether it is the launcher's stream under its own number.
pub(super) fn is_one(open: &OpenDescriptor) -> bool {
    (0..3).contains(&open.number) && is(open, open.number)
}

fn is(open: &OpenDescriptor, stream: i32) -> bool {
    remembered(stream)
        .filter(|number| leads_to(*number) == Some(open.key()))
        .and_then(|number| OpenDescriptor::look(number, LIVING).ok())
        .is_some_and(|remembered| same_open_file::compare(&remembered, open) != Same::Two)
}

/// Returns the file that a number leads to.
fn leads_to(number: RawFd) -> Option<FileKey> {
    let mut status = std::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: fstat fills the structure, for which zeros are valid too.
    let status = unsafe {
        if libc::fstat(number, status.as_mut_ptr()) != 0 {
            return None;
        }
        status.assume_init()
    };
    Some(FileKey {
        device: status.st_dev,
        inode: status.st_ino,
    })
}

/// Returns whether the descriptor is a pipe or socket that the launcher had left open.
pub(super) fn left_open(open: &OpenDescriptor) -> bool {
    is_pipe_or_socket(open)
        && GIVEN.get().is_some_and(|known| {
            let mut others = known.iter().filter(|given| given.0 > 2);
            others.any(|given| given.0 == open.number && same_as(open, given))
        })
}
