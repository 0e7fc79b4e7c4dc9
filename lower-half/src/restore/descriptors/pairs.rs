//! Pairs of Unix sockets, made again.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use stillpoint_image::descriptors::SocketOption;

use super::owned::owned;
use crate::capture::descriptors::queue::send;

/// More than the kernel permits; it grants as much as it can.
const LARGE: i32 = 1 << 30;

/// One end of a pair, as the image has it.
pub struct End<'a> {
    pub pair: u64,
    pub second: bool,
    pub socket_type: i32,
    pub content: Vec<u8>,
    pub messages: &'a [u32],
    pub shut: u8,
    pub reset: bool,
    pub options: &'a [SocketOption],
}

/// The settings that an end gets when both ends have been filled.
struct Rest {
    shut: u8,
    reset: bool,
    options: Vec<SocketOption>,
}

struct Pair {
    ends: [OwnedFd; 2],
    rests: [Option<Rest>; 2],
}

/// The pairs that have been made, by the image's number for them.
#[derive(Default)]
pub struct Pairs {
    made: BTreeMap<u64, Pair>,
}

impl Pairs {
    /// Returns one end of a pair; the pair is made when its first end is asked for.
    pub fn end(&mut self, end: &End<'_>) -> io::Result<OwnedFd> {
        let pair = match self.made.entry(end.pair) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(make(end.socket_type)?),
        };
        let (this, other) = (usize::from(end.second), usize::from(!end.second));
        fill(&pair.ends[other], end)?;
        pair.rests[this] = Some(Rest {
            shut: end.shut,
            reset: end.reset,
            options: end.options.to_vec(),
        });
        pair.ends[this].try_clone()
    }

    /// Sets options and shuts or closes ends, when all pairs have been filled.
    pub fn finish(self) -> io::Result<()> {
        for pair in self.made.into_values() {
            let alone = pair.rests.iter().flatten().count() == 1;
            for (end, rest) in pair.ends.iter().zip(&pair.rests) {
                let Some(rest) = rest else { continue };
                if alone && rest.reset {
                    // The byte stays unread in a socket that is closed when the pair is dropped.
                    send(end.as_raw_fd(), &[0])?;
                }
                if !alone {
                    shut(end, rest.shut)?;
                }
                rest.options
                    .iter()
                    .try_for_each(|option| set(end, option))?;
            }
        }
        Ok(())
    }
}

fn make(socket_type: i32) -> io::Result<Pair> {
    let mut ends = [0; 2];
    let flags = socket_type | libc::SOCK_CLOEXEC;
    // SAFETY: the kernel writes two numbers to the array, which lives on this stack.
    if unsafe { libc::socketpair(libc::AF_UNIX, flags, 0, ends.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let ends = [owned(ends[0])?, owned(ends[1])?];
    // Large buffers have space for everything that was under way, until the options are set.
    for end in &ends {
        set_bytes(
            end,
            (libc::SOL_SOCKET, libc::SO_SNDBUF),
            &LARGE.to_ne_bytes(),
        )?;
    }
    Ok(Pair {
        ends,
        rests: [None, None],
    })
}

/// Sends the bytes that were waiting at the other end.
fn fill(writer: &OwnedFd, end: &End<'_>) -> io::Result<()> {
    let mut rest = end.content.as_slice();
    if end.socket_type == libc::SOCK_STREAM {
        while !rest.is_empty() {
            let sent = send(writer.as_raw_fd(), rest)?;
            rest = rest.get(sent..).unwrap_or_default();
        }
        return Ok(());
    }
    for length in end.messages {
        let (message, others) = rest
            .split_at_checked(*length as usize)
            .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
        send(writer.as_raw_fd(), message)?;
        rest = others;
    }
    Ok(())
}

fn shut(end: &OwnedFd, bits: u8) -> io::Result<()> {
    let how = match bits & 3 {
        0 => return Ok(()),
        1 => libc::SHUT_RD,
        2 => libc::SHUT_WR,
        _ => libc::SHUT_RDWR,
    };
    // SAFETY: shutdown takes numbers and touches no memory; the end is open (a reference).
    match unsafe { libc::shutdown(end.as_raw_fd(), how) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sets an option to the value that it had.
pub fn set(end: &OwnedFd, option: &SocketOption) -> io::Result<()> {
    let value: Result<[u8; 4], _> = option.value.as_slice().try_into();
    match value {
        // The kernel doubles the value that it is given.
        Ok(value)
            if option.level == libc::SOL_SOCKET
                && matches!(option.name, libc::SO_SNDBUF | libc::SO_RCVBUF) =>
        {
            let half = i32::from_ne_bytes(value) / 2;
            set_bytes(end, (option.level, option.name), &half.to_ne_bytes())
        }
        _ => set_bytes(end, (option.level, option.name), &option.value),
    }
}

fn set_bytes(end: &OwnedFd, (level, name): (i32, i32), value: &[u8]) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes as the value has.
    let result = unsafe {
        libc::setsockopt(
            end.as_raw_fd(),
            level,
            name,
            value.as_ptr().cast(),
            value.len() as libc::socklen_t,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
