//! Sockets that lead out of the job, if the launch lets a restart make them anew without their peers (`--sockets reset`).
//!
//! A connection comes back as one that its peer has closed: the program sees `ECONNRESET`, as after a failure of the network. Sockets that listen, and those of
//! datagrams, come back with their addresses. What a socket of these kinds may have and the kernel does not tell makes a checkpoint refuse.

use std::os::fd::RawFd;
use std::sync::OnceLock;

use stillpoint_image::descriptors::{DescriptorKind, SocketOption, SocketRole};
use stillpoint_protocol::launch::{Launch, Sockets};
use stillpoint_refusals::{Refusal, refusal};

use super::sockets::{address_bytes, option};

static HOW: OnceLock<Sockets> = OnceLock::new();

/// Notes the setting of the launch, before the application runs.
pub fn remember(launch: &Launch) {
    HOW.get_or_init(|| launch.sockets);
}

/// Whether a restart may make sockets anew.
pub fn are_made_anew() -> bool {
    HOW.get() == Some(&Sockets::Reset)
}

/// Options that are carried, each with its level.
const OPTIONS: [(libc::c_int, libc::c_int); 38] = [
    (libc::SOL_SOCKET, libc::SO_REUSEADDR),
    (libc::SOL_SOCKET, libc::SO_REUSEPORT),
    (libc::SOL_SOCKET, libc::SO_BROADCAST),
    (libc::SOL_SOCKET, libc::SO_KEEPALIVE),
    (libc::SOL_SOCKET, libc::SO_OOBINLINE),
    (libc::SOL_SOCKET, libc::SO_LINGER),
    (libc::SOL_SOCKET, libc::SO_SNDBUF),
    (libc::SOL_SOCKET, libc::SO_RCVBUF),
    (libc::SOL_SOCKET, libc::SO_RCVLOWAT),
    (libc::SOL_SOCKET, libc::SO_RCVTIMEO),
    (libc::SOL_SOCKET, libc::SO_SNDTIMEO),
    (libc::SOL_SOCKET, libc::SO_BINDTODEVICE),
    (libc::SOL_SOCKET, libc::SO_TIMESTAMP),
    (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS),
    (libc::SOL_SOCKET, libc::SO_PASSCRED),
    (libc::IPPROTO_TCP, libc::TCP_NODELAY),
    (libc::IPPROTO_TCP, libc::TCP_CORK),
    (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE),
    (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL),
    (libc::IPPROTO_TCP, libc::TCP_KEEPCNT),
    (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT),
    (libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT),
    (libc::IPPROTO_TCP, libc::TCP_FASTOPEN),
    (libc::IPPROTO_IP, libc::IP_TOS),
    (libc::IPPROTO_IP, libc::IP_TTL),
    (libc::IPPROTO_IP, libc::IP_PKTINFO),
    (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER),
    (libc::IPPROTO_IP, libc::IP_RECVERR),
    (libc::IPPROTO_IP, libc::IP_MULTICAST_TTL),
    (libc::IPPROTO_IP, libc::IP_MULTICAST_LOOP),
    (libc::IPPROTO_IP, libc::IP_FREEBIND),
    (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY),
    (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS),
    (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO),
    (libc::IPPROTO_IPV6, libc::IPV6_RECVERR),
    (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
    (libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_HOPS),
    (libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_LOOP),
];

/// Describes an internet socket.
pub fn internet(number: RawFd, family: i32, socket_type: i32) -> Result<DescriptorKind, Refusal> {
    let protocol = option(number, libc::SO_PROTOCOL);
    let role = match (socket_type, protocol) {
        (libc::SOCK_STREAM, libc::IPPROTO_TCP | libc::IPPROTO_MPTCP) => stream_role(number),
        (libc::SOCK_DGRAM, libc::IPPROTO_UDP) => SocketRole::Open {
            peer: address_bytes(number, libc::getpeername),
        },
        _ => {
            return Err(refusal!(
                OpenSocket,
                "a network socket of protocol {protocol}, which no restart makes anew: close it before a checkpoint"
            ));
        }
    };
    described(number, family, socket_type, protocol, role)
}

/// Describes a Unix socket that has a name and no connection: one that listens, or is for datagrams.
pub fn unix(number: RawFd, socket_type: i32, listens: bool) -> Result<DescriptorKind, Refusal> {
    let role = match listens {
        true => SocketRole::Listening {
            backlog: libc::SOMAXCONN,
        },
        false => SocketRole::Open {
            peer: address_bytes(number, libc::getpeername),
        },
    };
    described(number, libc::AF_UNIX, socket_type, 0, role)
}

fn described(
    number: RawFd,
    family: i32,
    socket_type: i32,
    protocol: i32,
    role: SocketRole,
) -> Result<DescriptorKind, Refusal> {
    if value(number, libc::SOL_SOCKET, libc::SO_GET_FILTER).is_some_and(|it| !it.is_empty()) {
        return Err(refusal!(
            OpenSocket,
            "a socket with a packet filter (SO_ATTACH_FILTER), which the kernel does not give back: close it before a checkpoint"
        ));
    }
    if let Some(group) = super::multicast::joined(number, family) {
        return Err(refusal!(
            OpenSocket,
            "a socket that is in the multicast group {group}, which no restart joins anew: leave it before a checkpoint"
        ));
    }
    Ok(DescriptorKind::Outward {
        family,
        socket_type,
        protocol,
        local: address_bytes(number, libc::getsockname),
        role,
        options: OPTIONS
            .into_iter()
            .filter_map(|(level, name)| {
                let value = value(number, level, name)?;
                Some(SocketOption { level, name, value })
            })
            .collect(),
    })
}

/// What becomes of a TCP socket.
fn stream_role(number: RawFd) -> SocketRole {
    /// `enum tcp_states` of the kernel.
    const CLOSE: u8 = 7;
    const LISTEN: u8 = 10;
    /// The place of `tcpi_sacked` in `struct tcp_info`: of a socket that listens, the most connections that wait (tcp_get_info in the kernel).
    const BACKLOG: std::ops::Range<usize> = 28..32;
    let info = value(number, libc::IPPROTO_TCP, libc::TCP_INFO).unwrap_or_default();
    let events = events(number);
    match info.first() {
        Some(&LISTEN) => {
            let backlog = info.get(BACKLOG).and_then(|bytes| bytes.try_into().ok());
            SocketRole::Listening {
                backlog: backlog.map_or(libc::SOMAXCONN, i32::from_ne_bytes),
            }
        }
        // Never connected: one that was has at least been told that nothing more comes.
        Some(&CLOSE) if events & libc::POLLRDHUP == 0 => SocketRole::Open { peer: None },
        state => SocketRole::Lost {
            told: state == Some(&CLOSE) && events & libc::POLLERR == 0,
        },
    }
}

fn events(number: RawFd) -> i16 {
    let mut poll = libc::pollfd {
        fd: number,
        events: libc::POLLRDHUP,
        revents: 0,
    };
    // SAFETY: poll reads and writes one structure, which lives on this stack, and does not wait.
    unsafe { libc::poll(&raw mut poll, 1, 0) };
    poll.revents
}

/// Returns an option's value, if the socket has this option.
fn value(number: RawFd, level: libc::c_int, name: libc::c_int) -> Option<Vec<u8>> {
    let mut value = [0u8; 256];
    let mut bytes = match name {
        // Its length is counted in instructions; without room the kernel only tells it.
        libc::SO_GET_FILTER if level == libc::SOL_SOCKET => 0,
        _ => value.len() as libc::socklen_t,
    };
    // SAFETY: the kernel writes at most `bytes` bytes to the value, which has as many.
    let result = unsafe {
        libc::getsockopt(
            number,
            level,
            name,
            value.as_mut_ptr().cast(),
            &raw mut bytes,
        )
    };
    (result == 0).then(|| value[..(bytes as usize).min(value.len())].to_vec())
}
