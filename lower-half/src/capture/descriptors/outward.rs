//! Connections that lead out of the process, if the launch lets a restart lose them (`--sockets reset`).
//!
//! A restart makes a connection in its place whose peer has closed it: the program sees `ECONNRESET`, as after a failure of the network.

use std::os::fd::RawFd;
use std::sync::OnceLock;

use stillpoint_image::descriptors::{DescriptorKind, Descriptors, SocketOption};
use stillpoint_protocol::launch::{Launch, Sockets};

use crate::gate::descriptors;
use crate::ground::socket_options::{events, option, value};

static HOW: OnceLock<Sockets> = OnceLock::new();

/// Notes the setting of the launch, before the application runs.
pub fn remember(launch: &Launch) {
    HOW.get_or_init(|| launch.sockets);
}

/// Whether a restart may lose connections.
pub fn may_be_lost() -> bool {
    HOW.get() == Some(&Sockets::Reset)
}

/// Options that are carried, each with its level, so that the program finds them as they were. The connection itself has no more use for them.
const OPTIONS: [(libc::c_int, libc::c_int); 10] = [
    (libc::SOL_SOCKET, libc::SO_REUSEADDR),
    (libc::SOL_SOCKET, libc::SO_KEEPALIVE),
    (libc::SOL_SOCKET, libc::SO_OOBINLINE),
    (libc::SOL_SOCKET, libc::SO_LINGER),
    (libc::SOL_SOCKET, libc::SO_RCVTIMEO),
    (libc::SOL_SOCKET, libc::SO_SNDTIMEO),
    (libc::IPPROTO_TCP, libc::TCP_NODELAY),
    (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE),
    (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL),
    (libc::IPPROTO_TCP, libc::TCP_KEEPCNT),
];

/// Describes a TCP connection. Returns `None` for sockets without one: those that listen, those that were never connected, and those of other protocols.
pub fn connection(number: RawFd, family: i32) -> Option<DescriptorKind> {
    /// `enum tcp_states` of the kernel.
    const CLOSE: u8 = 7;
    const LISTEN: u8 = 10;
    /// The places of `tcpi_bytes_acked` and `tcpi_bytes_received` in `struct tcp_info`.
    const ACKED: std::ops::Range<usize> = 120..128;
    const RECEIVED: std::ops::Range<usize> = 128..136;
    if option(number, libc::SO_PROTOCOL) != libc::IPPROTO_TCP {
        return None;
    }
    let info = value(number, libc::IPPROTO_TCP, libc::TCP_INFO)?;
    let state = *info.first()?;
    let moved = |place: std::ops::Range<usize>| {
        let bytes = info.get(place);
        bytes.is_some_and(|bytes| bytes.iter().any(|byte| *byte != 0))
    };
    let is_over = state == CLOSE;
    let events = events(number);
    // An attempt to connect that has failed leaves a socket that may try again, once its error is taken.
    let never_was = !moved(ACKED) && !moved(RECEIVED) && events & libc::POLLERR == 0;
    if state == LISTEN || is_over && never_was {
        return None;
    }
    let told = is_over && events & libc::POLLERR == 0 && unread(number) == 0;
    Some(DescriptorKind::LostConnection {
        family,
        told,
        options: OPTIONS
            .into_iter()
            .filter_map(|(level, name)| {
                let value = value(number, level, name)?;
                Some(SocketOption { level, name, value })
            })
            .collect(),
    })
}

/// Lets a restart on this host have this rank's ports at once: a process closes its connections by its end, and the kernel keeps them for a minute, each with
/// this option. The process must be about to end.
pub fn free_ports() {
    if !may_be_lost() {
        return;
    }
    let numbers = descriptors::upper().into_iter();
    for number in numbers.filter(|number| option(*number, libc::SO_PROTOCOL) == libc::IPPROTO_TCP) {
        let on: libc::c_int = 1;
        // If this fails, the kernel keeps the port for that minute.
        // SAFETY: the kernel reads one number, as its length says.
        unsafe {
            libc::setsockopt(
                number,
                libc::SOL_SOCKET,
                libc::SO_REUSEADDR,
                (&raw const on).cast(),
                size_of::<libc::c_int>() as libc::socklen_t,
            )
        };
    }
}

/// Has epoll sets tell of connections that a restart loses: what they have told of these connections is no longer true.
pub fn will_be_told(table: &mut Descriptors) {
    if !may_be_lost() {
        return;
    }
    let lost: Vec<bool> = table
        .descriptions
        .iter()
        .map(|description| {
            matches!(
                description.kind,
                DescriptorKind::LostConnection { told: false, .. }
                    | DescriptorKind::SocketPair { reset: true, .. }
            )
        })
        .collect();
    let numbers = table.numbers.clone();
    let leads_to_lost = |number: i32| {
        let mut found = numbers.iter().filter(|known| known.number == number);
        found.any(|known| lost.get(known.description) == Some(&true))
    };
    for description in &mut table.descriptions {
        if let DescriptorKind::Epoll { watched } = &mut description.kind {
            for entry in watched {
                entry.told &= !leads_to_lost(entry.through.unwrap_or(entry.number));
            }
        }
    }
}

/// The number of bytes that wait to be read.
fn unread(number: RawFd) -> i32 {
    let mut bytes = 0;
    // SAFETY: the kernel writes one number, which lives on this stack.
    unsafe { libc::ioctl(number, libc::FIONREAD, &raw mut bytes) };
    bytes
}
