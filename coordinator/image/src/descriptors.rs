//! Open descriptors of the upper half, as an image keeps them.
//!
//! A *description* is what the kernel calls an open file description: offset and status flags, shared
//! by every *number* that was made from it with `dup`.

use serde::{Deserialize, Serialize};

/// All descriptors of the upper half.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Descriptors {
    pub descriptions: Vec<Description>,
    pub numbers: Vec<Number>,
}

/// One descriptor number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Number {
    pub number: i32,
    /// Index of its description.
    pub description: usize,
    pub close_on_exec: bool,
}

/// One open file description.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    pub kind: DescriptorKind,
    /// The result of `fcntl(F_GETFL)`.
    pub flags: i32,
    /// The result of `lseek`; 0 if there is no offset.
    pub offset: u64,
    /// Locks that this process held on the file.
    #[serde(default)]
    pub locks: Vec<Lock>,
    /// The receiver of signals when data arrives (`F_SETOWN`).
    #[serde(default)]
    pub owner: Option<Owner>,
    /// The signal that it gets (`F_SETSIG`); 0 stands for the usual one.
    #[serde(default)]
    pub signal: i32,
}

/// The receiver of a descriptor's signals, in terms that hold in another launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "who")]
pub enum Owner {
    Process,
    /// The process group that the process leads.
    Group,
    Thread {
        virtual_tid: u32,
    },
}

/// A file lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock {
    pub kind: LockKind,
    pub write: bool,
    pub start: u64,
    /// The last byte, or `None` for the end of the file, wherever that will be.
    pub end: Option<u64>,
}

/// How a lock was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LockKind {
    /// `fcntl(F_SETLK)`: the process's.
    Posix,
    /// `fcntl(F_OFD_SETLK)`: the open file description's.
    Description,
    /// `flock`.
    Whole,
}

/// The kind of an open description, with what it takes to open it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum DescriptorKind {
    /// Standard input, output or error (0, 1, 2) as the launcher gave it: the new launch provides it again.
    Inherited {
        stream: i32,
    },
    /// A regular file with a name. `bytes` is its length at the checkpoint; with `cut`, the restart gives it this length again.
    File {
        path: String,
        bytes: u64,
        cut: bool,
    },
    /// A regular file whose name is gone, or never was: its bytes are in the image.
    Unlinked {
        path: String,
        bytes: u64,
        content: u32,
        mode: u32,
        /// Made without a name (`O_TMPFILE`): `linkat` may give it one.
        #[serde(default)]
        linkable: bool,
    },
    /// `memfd_create`.
    Memory {
        name: String,
        bytes: u64,
        content: u32,
        seals: i32,
        #[serde(default = "memory_file_mode")]
        mode: u32,
    },
    Directory {
        path: String,
    },
    /// `O_PATH`: a place in the file system, whatever lies there.
    Path {
        path: String,
    },
    /// A device node: `/dev/null`, a terminal, ...
    Device {
        path: String,
    },
    /// One end of a pipe; both ends are in this process. `pipe` pairs them up.
    Pipe {
        pipe: u64,
        writes: bool,
        content: Option<u32>,
        bytes: u64,
        /// Lengths of the packets that it consists of (`O_DIRECT`); empty for a stream.
        #[serde(default)]
        packets: Vec<u32>,
        capacity: i32,
    },
    /// One end of `socketpair(AF_UNIX)`; both ends are in this process, or the other is gone. `pair` and `second` pair
    /// them up.
    SocketPair {
        pair: u64,
        second: bool,
        socket_type: i32,
        /// The content with the bytes that wait to be read at this end.
        content: Option<u32>,
        bytes: u64,
        /// Lengths of the messages that it consists of; empty for a stream.
        messages: Vec<u32>,
        /// The directions that `shutdown` has closed: bit 0: nothing more is received, bit 1: nothing more is sent.
        shut: u8,
        /// The next call reports that the other end was closed with bytes unread.
        reset: bool,
        options: Vec<SocketOption>,
    },
    /// A socket without a connection: one that listens, one of datagrams, or one that the program has only made. A restart makes and binds it again.
    UnconnectedSocket {
        /// `AF_UNIX`, `AF_INET` or `AF_INET6`.
        family: i32,
        socket_type: i32,
        protocol: i32,
        listens: bool,
        /// Its name, a `struct sockaddr`; empty: it has none.
        name: Vec<u8>,
        /// The receiver of its datagrams, likewise.
        peer: Vec<u8>,
        /// The mode of the file that is the name of a Unix socket, if there is one.
        mode: Option<u32>,
        options: Vec<SocketOption>,
    },
    /// A TCP connection that leads out of the process. A restart makes it anew, as one that its peer has closed.
    LostConnection {
        /// `AF_INET` or `AF_INET6`.
        family: i32,
        /// The program knows already that it is over.
        told: bool,
        options: Vec<SocketOption>,
    },
    EventFd {
        count: u64,
        semaphore: bool,
    },
    TimerFd {
        clock: i32,
        settime_flags: i32,
        ticks: u64,
        value_nanoseconds: u64,
        interval_nanoseconds: u64,
    },
    SignalFd {
        mask: u64,
    },
    Epoll {
        watched: Vec<Watched>,
    },
    Inotify {
        watches: Vec<Watch>,
    },
}

/// Returns the mode that the kernel gives a memory file.
fn memory_file_mode() -> u32 {
    0o777
}

/// `SOL_SOCKET`.
fn of_sockets() -> i32 {
    1
}

/// A result of `getsockopt`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketOption {
    #[serde(default = "of_sockets")]
    pub level: i32,
    pub name: i32,
    pub value: Vec<u8>,
}

/// One entry of an epoll set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watched {
    pub number: i32,
    pub events: u32,
    pub data: u64,
    /// A number that leads to the watched description, if `number` does not any more.
    #[serde(default)]
    pub through: Option<i32>,
    /// An entry of `EPOLLET` whose file is ready, and whose set has told that already.
    #[serde(default)]
    pub told: bool,
}

/// One inotify watch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watch {
    pub descriptor: i32,
    pub path: String,
    pub mask: u32,
}
