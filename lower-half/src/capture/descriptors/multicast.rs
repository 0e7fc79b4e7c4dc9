//! Multicast groups that a socket is in. The kernel lists the groups of a host, and answers for each whether a socket is in it.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::RawFd;

/// `MCAST_MSFILTER`, the same number for IP and IPv6.
const MCAST_MSFILTER: libc::c_int = 48;

/// `struct group_filter` without sources.
#[repr(C)]
struct GroupFilter {
    interface: u32,
    group: libc::sockaddr_storage,
    mode: u32,
    sources: u32,
}

/// Returns a group that the socket is in, if there is one.
pub fn joined(number: RawFd, family: i32) -> Option<IpAddr> {
    match family {
        libc::AF_INET => groups().into_iter().find(|it| is_in(number, it)),
        // Such a socket may be in groups of both kinds.
        libc::AF_INET6 => groups()
            .into_iter()
            .chain(groups_of_ipv6())
            .find(|it| is_in(number, it)),
        _ => None,
    }
    .map(|(_, group)| group)
}

type Group = (u32, IpAddr);

/// The groups of `/proc/net/igmp`: a line for each interface, then lines with a group in hexadecimal digits, as it lies in memory.
fn groups() -> Vec<Group> {
    let text = fs::read_to_string("/proc/thread-self/net/igmp").unwrap_or_default();
    let (mut interface, mut found) = (0, vec![]);
    for line in text.lines().skip(1) {
        let first = line.split_whitespace().next().unwrap_or_default();
        match line.starts_with(char::is_whitespace) {
            false => interface = first.parse().unwrap_or(0),
            true => {
                let group =
                    u32::from_str_radix(first, 16).map(|it| Ipv4Addr::from(it.to_ne_bytes()));
                found.extend(group.ok().map(|group| (interface, group.into())));
            }
        }
    }
    found
}

/// Those of `/proc/net/igmp6`: the interface's number, its name, the group in hexadecimal digits.
fn groups_of_ipv6() -> Vec<Group> {
    let text = fs::read_to_string("/proc/thread-self/net/igmp6").unwrap_or_default();
    let group = |line: &str| {
        let mut words = line.split_whitespace();
        let (interface, group) = (words.next()?, words.nth(1)?);
        let group = u128::from_str_radix(group, 16).ok()?;
        Some((interface.parse().ok()?, Ipv6Addr::from(group).into()))
    };
    text.lines().filter_map(group).collect()
}

fn is_in(number: RawFd, (interface, group): &Group) -> bool {
    // SAFETY: zeros are a valid address structure.
    let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let level = match group {
        IpAddr::V4(group) => {
            let address = libc::sockaddr_in {
                sin_family: libc::AF_INET as u16,
                sin_port: 0,
                sin_addr: libc::in_addr {
                    s_addr: u32::from_ne_bytes(group.octets()),
                },
                sin_zero: [0; 8],
            };
            // SAFETY: the storage is larger than the address and as aligned.
            unsafe {
                (&raw mut storage)
                    .cast::<libc::sockaddr_in>()
                    .write(address)
            };
            libc::IPPROTO_IP
        }
        IpAddr::V6(group) => {
            let address = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as u16,
                sin6_port: 0,
                sin6_flowinfo: 0,
                sin6_addr: libc::in6_addr {
                    s6_addr: group.octets(),
                },
                sin6_scope_id: 0,
            };
            // SAFETY: as above.
            unsafe {
                (&raw mut storage)
                    .cast::<libc::sockaddr_in6>()
                    .write(address)
            };
            libc::IPPROTO_IPV6
        }
    };
    let mut filter = GroupFilter {
        interface: *interface,
        group: storage,
        mode: 0,
        sources: 0,
    };
    let mut bytes = size_of::<GroupFilter>() as libc::socklen_t;
    // SAFETY: the kernel reads and writes at most `bytes` bytes of the structure, which lives on this stack.
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
}
