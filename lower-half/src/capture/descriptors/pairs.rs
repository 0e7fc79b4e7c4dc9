//! Pairs of Unix sockets (`socketpair`) with both ends in this process, or with the other end closed.

use std::io;
use std::os::fd::RawFd;

use stillpoint_image::descriptors::{DescriptorKind, SocketOption};
use stillpoint_refusals::{Code, Refusal, refusal};

use super::diagnosis::{self, Diagnosis};
use super::{All, OpenDescriptor, holders, queue};
use crate::capture::contents::Contents;
use crate::ground::child_delay::ENDS;
use crate::ground::socket_options::{events, value};

/// Options that are carried: sizes of buffers, credentials, least bytes, timeouts, peeking.
const OPTIONS: [libc::c_int; 7] = [
    libc::SO_SNDBUF,
    libc::SO_RCVBUF,
    libc::SO_PASSCRED,
    libc::SO_RCVLOWAT,
    libc::SO_RCVTIMEO,
    libc::SO_SNDTIMEO,
    libc::SO_PEEK_OFF,
];

/// Describes a Unix socket without a name, or says why it cannot be carried.
pub fn describe(
    open: &OpenDescriptor,
    all: &All<'_>,
    socket_type: i32,
    contents: &mut Contents,
) -> Result<DescriptorKind, Refusal> {
    let failed = |what: &str, error: io::Error| {
        let code = Code::of(&error, Code::UnclearDescriptor);
        Refusal::new(
            code,
            format!("a Unix socket whose {what} cannot be told: {error}"),
        )
    };
    let own = open.status.st_ino;
    let found = diagnosis::of(own).map_err(|error| failed("other end", error))?;
    let Some(peer) = found.peer else {
        return Err(refusal!(
            OpenSocket,
            "a Unix socket that is not connected: close it before a checkpoint"
        ));
    };
    let other = all
        .of_inode(peer)
        .find(|other| peer != own && other.file_type() == libc::S_IFSOCK);
    if peer != 0 && other.is_none() {
        return Err(held(all.holder(&[&link(peer)])));
    }
    if !open.is_scratch()
        && let Some(holder) = all.holder(&[&open.link, &link(peer)])
    {
        return Err(held(Some(holder)));
    }
    if other.is_some() && diagnosis::of(peer).ok().and_then(|other| other.peer) != Some(own) {
        return Err(refusal!(
            OpenSocket,
            "a Unix socket that is connected in one direction only: close it before a checkpoint"
        ));
    }
    let writer = other
        .filter(|_| found.shut & 1 == 0)
        .map(|other| other.number);
    let waiting = queue::peek(
        open.number,
        socket_type == libc::SOCK_STREAM,
        found.shut,
        writer,
    )
    .map_err(|error| failed("content", error))?;
    let bytes = waiting.bytes.len() as u64;
    Ok(DescriptorKind::SocketPair {
        pair: if peer == 0 { own } else { own.min(peer) },
        second: peer != 0 && peer < own,
        socket_type,
        content: (bytes > 0).then(|| contents.add_bytes(&open.link, waiting.bytes)),
        bytes,
        messages: waiting.messages,
        shut: found.shut,
        reset: reset(open.number, found),
        options: OPTIONS
            .into_iter()
            .filter_map(|name| option(open.number, name))
            .collect(),
    })
}

/// Describes a connection that a restart makes anew, as one whose other end was closed with bytes unread.
pub fn lost(open: &OpenDescriptor, socket_type: i32) -> DescriptorKind {
    DescriptorKind::SocketPair {
        pair: open.status.st_ino,
        second: false,
        socket_type,
        content: None,
        bytes: 0,
        messages: vec![],
        shut: 3,
        reset: true,
        options: OPTIONS
            .into_iter()
            .filter_map(|name| option(open.number, name))
            .collect(),
    }
}

/// The other end of a socket.
pub enum OtherEnd {
    /// There is none, or this process has it.
    Own,
    /// Another process has it, or will accept it.
    Elsewhere,
    Closed,
}

pub fn other_end(open: &OpenDescriptor, all: &All<'_>) -> OtherEnd {
    let Ok(found) = diagnosis::of(open.status.st_ino) else {
        return OtherEnd::Own;
    };
    match found.peer {
        None => OtherEnd::Own,
        Some(0) if found.shut == 3 => OtherEnd::Closed,
        Some(0) => OtherEnd::Elsewhere,
        Some(peer) if all.of_inode(peer).next().is_none() => OtherEnd::Elsewhere,
        Some(_) => OtherEnd::Own,
    }
}

fn link(inode: u64) -> String {
    format!("socket:[{inode}]")
}

fn held(holder: Option<u32>) -> Refusal {
    match holder {
        Some(holder) => refusal!(
            OpenSocket,
            "a Unix socket that {} has an end of: {ENDS} before a checkpoint",
            holders::in_words(holder)
        ),
        None => {
            refusal!(
                OpenSocket,
                "a Unix socket whose other end the program does not have: close it before a checkpoint"
            )
        }
    }
}

/// Returns whether the other end was closed with bytes unread, and the program does not know it yet.
fn reset(number: RawFd, found: Diagnosis) -> bool {
    found.peer == Some(0) && events(number) & libc::POLLERR != 0
}

fn option(number: RawFd, name: libc::c_int) -> Option<SocketOption> {
    let level = libc::SOL_SOCKET;
    let value = value(number, level, name)?;
    Some(SocketOption { level, name, value })
}
