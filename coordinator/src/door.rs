//! A job's door on its host: a socket without a file, at which the kernel names the process that knocks.
//!
//! Clients with the job's key use TCP and need no name. At the door no client needs a key. Root and the job's own user may ask for anything, members of the
//! job's group of operators for a suspend only, and others are turned away. Each side opens only files of its own.
//!
//! ```text
//! @stillpoint-job/UID/LAUNCH      frames of the codec, in clear: only the kernel is in between
//! ```

use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, UnixAddr, connect, getsockopt, socket,
    sockopt::PeerCredentials,
};
use nix::unistd::{Gid, Group, Uid, User, geteuid, getgrouplist};
use stillpoint_protocol::codec::{Decode, Encode, Frames, encode};

/// The beginning of every door's name.
const PREFIX: &str = "stillpoint-job/";
/// The time that a message may take to leave.
const WRITE_PATIENCE: Duration = Duration::from_secs(5);

fn name(user: u32, launch: &str) -> String {
    format!("{PREFIX}{user}/{launch}")
}

/// Opens the door of a job of this process's user.
pub fn open(launch: &str) -> io::Result<UnixListener> {
    let name = name(geteuid().as_raw(), launch);
    let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Every door of this host, with the user in its name; the visit checks whether it is that user's.
pub fn all() -> Vec<(u32, String)> {
    let table = std::fs::read("/proc/net/unix").unwrap_or_default();
    doors(&String::from_utf8_lossy(&table))
}

fn doors(table: &str) -> Vec<(u32, String)> {
    let mut doors: Vec<(u32, String)> = table
        .lines()
        .filter_map(|line| {
            let path = line.split_whitespace().nth(7)?;
            let (user, launch) = path
                .strip_prefix('@')?
                .strip_prefix(PREFIX)?
                .split_once('/')?;
            Some((user.parse().ok()?, launch.to_owned()))
        })
        .collect();
    // Connections have the same name in the table.
    doors.sort();
    doors.dedup();
    doors
}

/// A client that has knocked, and to which the door's owner answers.
#[derive(Debug)]
pub struct Visit {
    stream: UnixStream,
    frames: Frames,
}

impl Visit {
    /// Knocks. The call never waits, even if the door is somebody else's or crowded. It fails if the door is not that of `user`.
    pub fn pay(user: u32, launch: &str) -> io::Result<Visit> {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let held = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
        let address = UnixAddr::new_abstract(name(user, launch).as_bytes())?;
        connect(held.as_raw_fd(), &address)?;
        let stream = UnixStream::from(held);
        let peer = getsockopt(&stream, PeerCredentials)?;
        if peer.uid() != user {
            return Err(Errno::EACCES.into());
        }
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(WRITE_PATIENCE))?;
        let frames = Frames::default();
        Ok(Visit { stream, frames })
    }

    pub fn ask(&mut self, message: &impl Encode) -> io::Result<()> {
        self.stream
            .write_all(&encode(message).map_err(io::Error::other)?)
    }

    /// Waits for the next answer; `None`: the door was closed.
    pub fn answer<M: Decode<()>>(&mut self, patience: Option<Duration>) -> io::Result<Option<M>> {
        let until = patience.map(|patience| std::time::Instant::now() + patience);
        let mut bytes = [0; 4096];
        loop {
            if let Some(message) = self.frames.next_message().map_err(io::Error::other)? {
                return Ok(Some(message));
            }
            let left =
                until.map(|until| until.saturating_duration_since(std::time::Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.stream.set_read_timeout(left)?;
            match self.stream.read(&mut bytes) {
                Ok(0) => return Ok(None),
                Ok(count) => self.frames.push(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// The right of a client at the door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Anything: root, and the job's own user.
    Owner,
    /// A suspend.
    Operator,
    Stranger,
}

/// The standing of a user with this group at the door of a job with these operators, by the system's tables.
pub fn standing(user: u32, group: u32, operators: Option<&str>) -> Standing {
    if user == 0 || user == geteuid().as_raw() {
        return Standing::Owner;
    }
    match operators.is_some_and(|operators| is_member(user, group, operators)) {
        true => Standing::Operator,
        false => Standing::Stranger,
    }
}

fn is_member(user: u32, group: u32, operators: &str) -> bool {
    let known = Group::from_name(operators).ok().flatten();
    let number = operators.parse().map(Gid::from_raw).ok();
    let Some(operators) = known.map(|group| group.gid).or(number) else {
        return false;
    };
    if operators.as_raw() == group {
        return true;
    }
    let Some(user) = User::from_uid(Uid::from_raw(user)).ok().flatten() else {
        return false;
    };
    let name = std::ffi::CString::new(user.name).unwrap_or_default();
    let groups = getgrouplist(&name, user.gid).unwrap_or_default();
    groups.contains(&operators)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doors_are_read_off_the_kernels_table() {
        let table = "Num RefCount Protocol Flags Type St Inode Path\n\
            f1: 2 0 10000 1 01 17 @stillpoint-job/1000/ab12\n\
            f2: 3 0 0 1 03 18 @stillpoint-job/1000/ab12\n\
            f3: 3 0 0 1 03 19\n\
            f4: 2 0 10000 1 01 20 /run/stillpoint-job/5/x\n\
            f5: 2 0 10000 1 01 21 @stillpoint-job/x/y\n";
        assert_eq!(doors(table), [(1000, "ab12".to_owned())]);
    }

    #[test]
    fn a_door_is_its_owners() {
        let launch = format!("test-{}", std::process::id());
        let this = geteuid().as_raw();
        let _door = open(&launch).unwrap();
        assert!(all().contains(&(this, launch.clone())));
        assert!(Visit::pay(this, &launch).is_ok());
        // Another user's name on a door does not make it that user's.
        let theirs = name(this + 1, &launch);
        let address = SocketAddr::from_abstract_name(theirs).unwrap();
        let _forged = UnixListener::bind_addr(&address).unwrap();
        let refused = Visit::pay(this + 1, &launch).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn operators_are_members_of_the_group_and_nobody_else() {
        let (user, group) = (u32::MAX - 7, u32::MAX - 9);
        let own = group.to_string();
        assert_eq!(standing(user, group, Some(&own)), Standing::Operator);
        assert_eq!(standing(user, group, Some("17")), Standing::Stranger);
        assert_eq!(
            standing(user, group, Some("no-such-group")),
            Standing::Stranger
        );
        assert_eq!(standing(user, group, None), Standing::Stranger);
        assert_eq!(standing(0, 0, None), Standing::Owner);
        assert_eq!(standing(geteuid().as_raw(), group, None), Standing::Owner);
    }
}
