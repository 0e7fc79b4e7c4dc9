//! Sockets without a connection, which a restart makes and binds again: those that listen at abstract names and, if a restart may lose connections
//! (`--sockets reset`), all that listen or send datagrams.

use std::ffi::OsStr;
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;

use stillpoint_image::descriptors::{DescriptorKind, SocketOption};
use stillpoint_refusals::{Refusal, refusal};

use super::{All, OpenDescriptor, holders, outward};
use crate::ground::socket_options::{self, option};
use crate::ground::{proc_files, socket_names};

/// Options that are carried, each with its level. A socket has only some of them.
const OPTIONS: [(libc::c_int, libc::c_int); 48] = [
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
    (libc::SOL_SOCKET, libc::SO_PASSCRED),
    (libc::SOL_SOCKET, libc::SO_PEEK_OFF),
    (libc::SOL_SOCKET, libc::SO_BINDTODEVICE),
    (libc::SOL_SOCKET, libc::SO_PRIORITY),
    (libc::SOL_SOCKET, libc::SO_MARK),
    (libc::SOL_SOCKET, libc::SO_TIMESTAMP),
    (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS),
    (libc::IPPROTO_TCP, libc::TCP_NODELAY),
    (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE),
    (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL),
    (libc::IPPROTO_TCP, libc::TCP_KEEPCNT),
    (libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT),
    (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT),
    (libc::IPPROTO_TCP, libc::TCP_FASTOPEN),
    (libc::IPPROTO_TCP, libc::TCP_CONGESTION),
    (libc::IPPROTO_UDP, libc::UDP_SEGMENT),
    (libc::IPPROTO_UDP, libc::UDP_GRO),
    (libc::IPPROTO_IP, libc::IP_FREEBIND),
    (libc::IPPROTO_IP, libc::IP_TRANSPARENT),
    (libc::IPPROTO_IP, libc::IP_RECVERR),
    (libc::IPPROTO_IP, libc::IP_RECVTTL),
    (libc::IPPROTO_IP, libc::IP_RECVTOS),
    (libc::IPPROTO_IP, libc::IP_TOS),
    (libc::IPPROTO_IP, libc::IP_TTL),
    (libc::IPPROTO_IP, libc::IP_PKTINFO),
    (libc::IPPROTO_IP, libc::IP_MULTICAST_TTL),
    (libc::IPPROTO_IP, libc::IP_MULTICAST_LOOP),
    (libc::IPPROTO_IP, libc::IP_MULTICAST_IF),
    (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY),
    (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS),
    (libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_HOPS),
    (libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_LOOP),
    (libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_IF),
    (libc::IPPROTO_IPV6, libc::IPV6_RECVERR),
    (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
    (libc::IPPROTO_IPV6, libc::IPV6_RECVHOPLIMIT),
    (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO),
];

/// Describes a socket that is known to have no connection, or says why it cannot be carried.
pub fn describe(
    open: &OpenDescriptor,
    all: &All<'_>,
    (family, socket_type): (i32, i32),
) -> Result<DescriptorKind, Refusal> {
    let number = open.number;
    let refused = |why: &str| refusal!(OpenSocket, "a socket {why}: close it before a checkpoint");
    if let Some(holder) = all.holder(&[&open.link]) {
        let other = holders::in_words(holder);
        return Err(refused(&format!("that {other} has too")));
    }
    let protocol = option(number, libc::SO_PROTOCOL);
    let known = match family {
        libc::AF_UNIX => protocol == 0,
        _ => [libc::IPPROTO_TCP, libc::IPPROTO_UDP].contains(&protocol),
    };
    if !known {
        return Err(refused(&format!("of protocol {protocol}")));
    }
    if has_a_filter(number) {
        return Err(refused("with a packet filter"));
    }
    let listens = option(number, libc::SO_ACCEPTCONN) == 1;
    if listens && !outward::may_be_lost() && socket_options::events(number) & libc::POLLIN != 0 {
        return Err(refused("that listens, and whose clients wait"));
    }
    if protocol == libc::IPPROTO_UDP
        && let Some(group) = group_of(number)
    {
        return Err(refused(&format!("of the multicast group {group}")));
    }
    let mut name = socket_names::of(number, libc::getsockname);
    if family != libc::AF_UNIX && !socket_names::has_a_port(&name) {
        name.clear();
    }
    let path = socket_names::path(&name).map(|path| Path::new(OsStr::from_bytes(path)));
    if path.is_some_and(Path::is_relative) {
        return Err(refused("whose path is relative"));
    }
    let file = path.and_then(|path| fs::symlink_metadata(path).ok());
    if file
        .as_ref()
        .is_some_and(|file| !file.file_type().is_socket())
    {
        return Err(refused("whose path is another file's by now"));
    }
    if path
        .and_then(Path::parent)
        .is_some_and(|above| !above.is_dir())
    {
        return Err(refused("whose directory is gone"));
    }
    Ok(DescriptorKind::UnconnectedSocket {
        family,
        socket_type,
        protocol,
        listens,
        peer: socket_names::of(number, libc::getpeername),
        mode: file.map(|file| file.permissions().mode() & 0o7777),
        name,
        options: OPTIONS
            .into_iter()
            .filter_map(|(level, name)| {
                let value = socket_options::value(number, level, name)?;
                (!value.is_empty()).then_some(SocketOption { level, name, value })
            })
            .collect(),
    })
}

fn has_a_filter(number: RawFd) -> bool {
    let mut instructions = 0;
    // SAFETY: without room, the kernel writes only the number of instructions.
    let result = unsafe {
        libc::getsockopt(
            number,
            libc::SOL_SOCKET,
            libc::SO_GET_FILTER,
            std::ptr::null_mut(),
            &raw mut instructions,
        )
    };
    // The kernel does not show programs of eBPF.
    result != 0 || instructions > 0
}

/// `struct group_filter` without sources.
#[repr(C)]
struct GroupFilter {
    interface: u32,
    group: libc::sockaddr_storage,
    mode: u32,
    sources: u32,
}

/// Returns a multicast group that the socket has joined: the kernel lists the groups of this host, and says of each whether the socket is in it.
fn group_of(number: RawFd) -> Option<String> {
    const MCAST_MSFILTER: libc::c_int = 48;
    let groups = joined().unwrap_or_default();
    let of_socket = |(interface, address): &(u32, std::net::IpAddr)| {
        let mut filter = GroupFilter {
            interface: *interface,
            // SAFETY: zeros are a valid address structure.
            group: unsafe { std::mem::zeroed() },
            mode: 0,
            sources: 0,
        };
        let level = match address {
            std::net::IpAddr::V4(ip) => {
                let at = (&raw mut filter.group).cast::<libc::sockaddr_in>();
                // SAFETY: the storage is larger than this address and as aligned.
                unsafe {
                    (*at).sin_family = libc::AF_INET as u16;
                    (*at).sin_addr.s_addr = u32::from_ne_bytes(ip.octets());
                }
                libc::IPPROTO_IP
            }
            std::net::IpAddr::V6(ip) => {
                let at = (&raw mut filter.group).cast::<libc::sockaddr_in6>();
                // SAFETY: as above.
                unsafe {
                    (*at).sin6_family = libc::AF_INET6 as u16;
                    (*at).sin6_addr.s6_addr = ip.octets();
                }
                libc::IPPROTO_IPV6
            }
        };
        let mut bytes = size_of::<GroupFilter>() as libc::socklen_t;
        // SAFETY: the kernel reads and writes at most `bytes` bytes of the filter, which has as many and room for no source.
        let result = unsafe {
            libc::getsockopt(
                number,
                level,
                MCAST_MSFILTER,
                (&raw mut filter).cast(),
                &raw mut bytes,
            )
        };
        result == 0
    };
    let found = groups.iter().find(|group| of_socket(group))?;
    Some(found.1.to_string())
}

/// Returns the multicast groups that sockets of this host have joined, with their interfaces.
fn joined() -> Option<Vec<(u32, std::net::IpAddr)>> {
    let text = |path| Some(String::from_utf8_lossy(&proc_files::bytes(path).ok()?).into_owned());
    let mut groups = Vec::new();
    let mut interface = 0;
    for line in text("/proc/self/net/igmp")?.lines().skip(1) {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        match line.starts_with('\t') {
            // The kernel prints the four bytes as one number of this machine's order.
            true => groups.extend(
                u32::from_str_radix(first, 16)
                    .ok()
                    .map(|ip| (interface, Ipv4Addr::from(ip.to_ne_bytes()).into())),
            ),
            false => interface = first.parse().unwrap_or(0),
        }
    }
    // A host without IPv6 has no such file.
    for line in text("/proc/self/net/igmp6").unwrap_or_default().lines() {
        let mut words = line.split_whitespace();
        let interface = words.next().and_then(|word| word.parse().ok());
        let ip = words
            .nth(1)
            .and_then(|word| u128::from_str_radix(word, 16).ok());
        groups.extend(
            interface
                .zip(ip)
                .map(|(at, ip)| (at, Ipv6Addr::from(ip).into())),
        );
    }
    Some(groups)
}
