//! The launcher's standard streams: standard input, output and error of `stillpoint run` itself. They come from the new
//! launch, whatever they were in the old one.
//!
//! They are noted once, and every program that an application becomes or starts is told which they are. So what a script has put in their
//! place (`./app >out`, `zcat in | ./app`) is the application's own, as any other descriptor is. A standard input that is a file or a pipe is no stream of
//! the launcher's either: it belongs to the job ([`crate::ground::input`]).

use std::io;
use std::os::fd::{IntoRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

use super::same::{self, Same};
use super::{LIVING, Open, owned};
use crate::capture::contents::FileKey;
use crate::ground::inherited;

/// In the environment of programs that an application becomes or starts: the launcher's descriptors, as JSON.
pub const VARIABLE: &str = "STILLPOINT_STREAMS";

/// Numbers from here on are tried for the duplicates, so that the application's own come out as they
/// would without us.
const FROM: RawFd = 900;

/// A descriptor of the launcher's: its number, device, inode and whether it is to be read or written.
type Given = (RawFd, u64, u64, i32);

/// The launcher's open descriptors: its streams, and pipes and sockets that no program knows of. They are not the application's to lose.
static GIVEN: OnceLock<Vec<Given>> = OnceLock::new();

/// Our own duplicates of the streams, made before the application's first instruction; -1: there is none.
static STREAMS: [AtomicI32; 3] = [const { AtomicI32::new(-1) }; 3];

/// Notes what the launcher has given, before the application (or its descriptors) can change it.
pub fn remember() {
    note();
    if remembered(0).is_some_and(|number| {
        Open::look(number, LIVING).is_ok_and(|open| belongs_to_the_job(&open))
    }) {
        forget(0);
    }
}

/// The same where a process is about to come back: its standard input may be this launch's whatever it is, until [`remember`].
pub fn note() {
    GIVEN.get_or_init(|| {
        let all: Vec<Open> = inherited::descriptors()
            .filter_map(|number| Open::look(number as RawFd, LIVING).ok())
            .collect();
        let given =
            told().unwrap_or_else(|| all.iter().filter(|open| counts(open)).map(given).collect());
        for stream in given.iter().filter(|given| (0..3).contains(&given.0)) {
            // A program has them under other numbers where a script has put them there.
            let here = all.iter().find(|open| same_as(open, stream));
            let here = here.and_then(|open| duplicate(open.number).ok());
            if let (Some(place), Some(here)) = (STREAMS.get(stream.0 as usize), here) {
                place.store(here.into_raw_fd(), Ordering::Release);
            }
        }
        given
    });
}

/// The variable for programs that the application becomes or starts.
pub fn variable() -> Option<String> {
    let given = serde_json::to_string(GIVEN.get()?).ok()?;
    Some(format!("{VARIABLE}={given}"))
}

fn told() -> Option<Vec<Given>> {
    serde_json::from_str(&std::env::var(VARIABLE).ok()?).ok()
}

/// True for a descriptor that is the launcher's to give. Files above the streams are as good as opened by the program itself.
fn counts(open: &Open) -> bool {
    open.number < 3 || is_pipe_or_socket(open)
}

fn is_pipe_or_socket(open: &Open) -> bool {
    matches!(open.file_type(), libc::S_IFIFO | libc::S_IFSOCK)
}

fn given(open: &Open) -> Given {
    let key = open.key();
    (
        open.number,
        key.device,
        key.inode,
        open.flags & libc::O_ACCMODE,
    )
}

/// Compares a descriptor with one of the launcher's; its number may be another.
fn same_as(open: &Open, stream: &Given) -> bool {
    let (_, device, inode, access) = given(open);
    (device, inode, access) == (stream.1, stream.2, stream.3)
}

/// True for a standard input that is carried as any descriptor is: files and pipes, and devices that keep nothing.
fn belongs_to_the_job(open: &Open) -> bool {
    /// `/dev/null` and its like.
    const MEMORY: u32 = 1;
    match open.file_type() {
        libc::S_IFREG | libc::S_IFIFO | libc::S_IFDIR => true,
        libc::S_IFCHR => libc::major(open.status.st_rdev) == MEMORY,
        _ => false,
    }
}

fn duplicate(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: F_DUPFD_CLOEXEC takes a number and touches no memory.
    let high = owned(unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, FROM) });
    // SAFETY: as above.
    high.or_else(|_| owned(unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) }))
}

fn forget(stream: usize) {
    let number = STREAMS[stream].swap(-1, Ordering::AcqRel);
    if number >= 0 {
        // SAFETY: the duplicate was made here, and nobody else knows it.
        unsafe { libc::close(number) };
    }
}

/// The remembered stream's descriptor in this launch; `None` where the launcher gave none, or the program has none of it.
pub fn remembered(stream: i32) -> Option<RawFd> {
    let number = STREAMS.get(stream as usize)?.load(Ordering::Acquire);
    (number >= 0).then_some(number)
}

/// The launcher's stream that a descriptor is, if any.
pub(super) fn inherited(open: &Open) -> Option<i32> {
    let others = (0..3).filter(|stream| *stream != open.number);
    let mut all = (0..3).filter(|stream| *stream == open.number).chain(others);
    all.find(|stream| is(open, *stream))
}

/// True for the launcher's stream under its own number.
pub(super) fn is_one(open: &Open) -> bool {
    (0..3).contains(&open.number) && is(open, open.number)
}

fn is(open: &Open, stream: i32) -> bool {
    remembered(stream)
        .filter(|number| leads_to(*number) == Some(open.key()))
        .and_then(|number| Open::look(number, LIVING).ok())
        .is_some_and(|remembered| same::compare(&remembered, open) != Same::Two)
}

/// The file that a number leads to.
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

/// Whether the descriptor is a pipe or socket that the launcher had left open.
pub(super) fn left_open(open: &Open) -> bool {
    is_pipe_or_socket(open)
        && GIVEN.get().is_some_and(|known| {
            let mut others = known.iter().filter(|given| given.0 > 2);
            others.any(|given| given.0 == open.number && same_as(open, given))
        })
}
